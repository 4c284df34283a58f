"""The losses of PyTorch's side: cross-entropy and the augmented loss of Inan, Khosravi, Socher 2017 in its natural form."""
import torch
import torch.nn.functional as F

GAMMA, TAU = 0.65, 20.0


def loss_of(kind, hidden, E, y, bias=None):
    """The straightforward form, summed over positions: all logits, a softmax for each temperature, the soft target of every token.

    kind  ce; al: the gradient flows through the soft target; al_held: it does not
    """
    logits = F.linear(hidden, E, bias)
    loss = F.cross_entropy(logits, y, reduction="sum")
    if kind != "ce":
        # In float under autocast too: with a softmax rounded to bfloat16 the divergence is four times too small.
        tempered = lambda logits: F.log_softmax(logits / TAU, dim=-1, dtype=torch.float32)
        with torch.set_grad_enabled(kind == "al" and torch.is_grad_enabled()):
            target = tempered(F.embedding(y, E) @ E.t())
        loss = loss + GAMMA * TAU * F.kl_div(tempered(logits), target, reduction="sum", log_target=True)
    return loss
