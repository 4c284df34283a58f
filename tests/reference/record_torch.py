"""Records a model of PyTorch, in float64: its state dict, and what it computes.

    /usr/bin/python3 tests/reference/record_torch.py > tests/reference/torch_values.hpp

An embedding, two layers of an LSTM in both directions, an RNN, a linear layer, a head. Columns are as long as the pass.
And steps of its SGD with momentum on given gradients.
"""
import torch
from torch import nn

torch.set_default_dtype(torch.float64)
random = torch.Generator().manual_seed(1704)
T, B, V = 4, 2, 7


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Embedding(V, 3)
        self.both = nn.LSTM(3, 2, num_layers=2, bidirectional=True)
        self.up = nn.RNN(4, 3)
        self.map = nn.Linear(3, 2)
        self.decoder = nn.Linear(2, V)

    def forward(self, x):
        return self.decoder(self.map(self.up(self.both(self.encoder(x))[0])[0]))


model = Model()
for p in model.parameters():  # two decimals, so that the record stays short
    p.data = torch.round(torch.randn(*p.shape, generator=random) * 60) / 100
tokens = torch.randint(V, (T, B), generator=random)


def numbers(values):
    return ", ".join(repr(v).removesuffix(".0") for v in values.reshape(-1).tolist())


print(f"// Written by: /usr/bin/python3 tests/reference/record_torch.py > tests/reference/torch_values.hpp (PyTorch {torch.__version__})")
print("""// clang-format off
#pragma once

#include <isogloss/types.hpp>
#include <string>
#include <vector>

namespace reference::torch {

struct Stored {
    std::string name;
    std::vector<isogloss::Index> shape;
    std::vector<double> values;
};
""")
print("inline const std::vector<Stored> state_dict = {")
print(",\n".join(f'    {{"{k}", {{{", ".join(map(str, v.shape))}}},\n        {{{numbers(v)}}}}}' for k, v in model.state_dict().items()) + "};")
print(f"inline const std::vector<isogloss::Token> tokens = {{{numbers(tokens)}}};  // [{T}, {B}]")
print(f"inline const std::vector<double> logits = {{  // [{T}, {B}, {V}]")
print(",\n".join("    " + numbers(row) for row in model(tokens).detach().reshape(T * B, V)) + "};")

w = nn.Parameter(torch.tensor([1, -2, 0.5]))
sgd = torch.optim.SGD([w], lr=0.1, momentum=0.9, weight_decay=0.01)
gradients, path = torch.round(torch.randn(4, 3, generator=random) * 100) / 100, []
for step, g in enumerate(gradients):
    if step == 2:
        sgd.param_groups[0]["lr"] = 0.05
    w.grad = g.clone()
    sgd.step()
    path.append(w.detach().clone())
print("\n// SGD(lr=0.1, momentum=0.9, weight_decay=0.01) from (1, -2, 0.5), from the third step on with lr=0.05: gradients, and weights after each step")
print(f"inline const std::vector<double> sgd_gradients = {{{numbers(gradients)}}};  // [4, 3]")
print(f"inline const std::vector<double> sgd_path = {{{numbers(torch.stack(path))}}};  // [4, 3]\n\n}}  // namespace reference::torch")
