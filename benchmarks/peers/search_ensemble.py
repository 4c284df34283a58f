"""Many language models that take their steps together on one GPU: what search_torch.py trains."""
import os

import torch
import torch.nn.functional as F

from train_torch import columns, rate_of

try:
    import triton
    import triton.language as tl
except ImportError:  # of PyTorch without a GPU
    triton = None

HALF = torch.bfloat16  # of the factors of products
OPTIONS = {"keep": 0.7, "keep_words": 1.0, "scheme": "tied", "rate": 1.0, "clip": 5.0, "gamma": 0.65, "temperature": 20.0, "init": 0.1,
           "seed": 1, "schedule": "one-cycle", "warm_up": 0.05, "finish": 0.0, "decay_from": 5, "decay": 0.9,
           "keep_input": None, "keep_state": None, "keep_between": None, "keep_output": None, "keep_weights": 1.0, "ar": 0.0, "tar": 0.0,
           "weight_decay": 0.0}
GROUP = {"name", "units", "columns", "steps", "epochs", "loss", "head", "models"}  # what is not an option of a model


if triton is not None:
    @triton.jit
    def rows_kernel(Z, bias, targets, gamma, temperature, nats, V, ROWS, KROWS, share, AL: tl.constexpr, TRAIN: tl.constexpr,
                    BLOCK: tl.constexpr):
        """A row of logits [K, KROWS, V] becomes its gradient; with AL the row of the target ROWS further on as well."""
        k, r = tl.program_id(1), tl.program_id(0)
        i = tl.arange(0, BLOCK)
        within = i < V
        row = Z + (k.to(tl.int64) * KROWS + r) * V
        o = tl.load(row + i, mask=within, other=0).to(tl.float32) + tl.load(bias + k * V + i, mask=within, other=0)
        o = tl.where(within, o, float("-inf"))
        y = tl.load(targets + r)
        top = tl.max(o, 0)
        e = tl.exp(o - top)
        total = tl.sum(e, 0)
        at = tl.sum(tl.where(i == y, o, 0.0), 0)
        tl.store(nats + k * ROWS + r, tl.where(y >= 0, top + tl.log(total) - at, 0.0))
        if TRAIN:
            use = tl.where(y >= 0, share, 0.0)
            g = e / total - tl.where(i == y, 1.0, 0.0)
            if AL:
                weight, tau = tl.load(gamma + k), tl.load(temperature + k)
                other = row + ROWS.to(tl.int64) * V
                s = tl.load(other + i, mask=within, other=0).to(tl.float32)
                s = tl.where(within, s, float("-inf")) / tau
                s_top = tl.max(s, 0)
                s_log = s_top + tl.log(tl.sum(tl.exp(s - s_top), 0))
                u = o / tau
                u_log = top / tau + tl.log(tl.sum(tl.exp(u - top / tau), 0))
                q = tl.exp(s - s_log)
                ratio = tl.where(within, (s - s_log) - (u - u_log), 0.0)
                kl = tl.sum(q * ratio, 0)
                g += weight * (tl.exp(u - u_log) - q)
                tl.store(other + i, (use * weight * q * (ratio - kl)), mask=within)
            tl.store(row + i, (use * g), mask=within)

    @triton.jit
    def lstm_forward_kernel(zx, zh, gates, c, h_up, h_rec, m_up, m_rec, B, N, sx, sg, sc, BLOCK: tl.constexpr):
        """One step of all models: z [K, B, 4N] at stride sx, gates at sg, c and h at sc; the new c and h lie B N further on."""
        k, at = tl.program_id(1).to(tl.int64), tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        ok = at < B * N
        b, j = at // N, at % N
        four = b * 4 * N + j
        zi = tl.load(zx + k * sx + four, mask=ok).to(tl.float32) + tl.load(zh + k * B * 4 * N + four, mask=ok).to(tl.float32)
        zf = tl.load(zx + k * sx + four + N, mask=ok).to(tl.float32) + tl.load(zh + k * B * 4 * N + four + N, mask=ok).to(tl.float32)
        zg = tl.load(zx + k * sx + four + 2 * N, mask=ok).to(tl.float32) + tl.load(zh + k * B * 4 * N + four + 2 * N, mask=ok).to(tl.float32)
        zo = tl.load(zx + k * sx + four + 3 * N, mask=ok).to(tl.float32) + tl.load(zh + k * B * 4 * N + four + 3 * N, mask=ok).to(tl.float32)
        i, f, o = tl.sigmoid(zi), tl.sigmoid(zf), tl.sigmoid(zo)
        g = 2 * tl.sigmoid(2 * zg) - 1
        new = f * tl.load(c + k * sc + at, mask=ok) + i * g
        h = o * (2 * tl.sigmoid(2 * new) - 1)
        tl.store(c + k * sc + B * N + at, new, mask=ok)
        tl.store(gates + k * sg + four, i, mask=ok)
        tl.store(gates + k * sg + four + N, f, mask=ok)
        tl.store(gates + k * sg + four + 2 * N, g, mask=ok)
        tl.store(gates + k * sg + four + 3 * N, o, mask=ok)
        up = h * tl.load(m_up + k * B * N + at, mask=ok)
        rec = h * tl.load(m_rec + k * B * N + at, mask=ok)
        tl.store(h_up + k * sc + B * N + at, up, mask=ok)
        tl.store(h_rec + k * sc + B * N + at, rec, mask=ok)

    @triton.jit
    def lstm_backward_kernel(d_up, d_rec, dc, gates, c, m_up, m_rec, dz, B, N, sd, sg, sc, BLOCK: tl.constexpr):
        """One step back: dz from the adjoints of both masked states; dc is carried."""
        k, at = tl.program_id(1).to(tl.int64), tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        ok = at < B * N
        b, j = at // N, at % N
        four = b * 4 * N + j
        i = tl.load(gates + k * sg + four, mask=ok).to(tl.float32)
        f = tl.load(gates + k * sg + four + N, mask=ok).to(tl.float32)
        g = tl.load(gates + k * sg + four + 2 * N, mask=ok).to(tl.float32)
        o = tl.load(gates + k * sg + four + 3 * N, mask=ok).to(tl.float32)
        t = 2 * tl.sigmoid(2 * tl.load(c + k * sc + B * N + at, mask=ok)) - 1
        dh = tl.load(d_up + k * sd + at, mask=ok).to(tl.float32) * tl.load(m_up + k * B * N + at, mask=ok)
        dh += tl.load(d_rec + k * B * N + at, mask=ok).to(tl.float32) * tl.load(m_rec + k * B * N + at, mask=ok)
        d = tl.load(dc + k * B * N + at, mask=ok) + dh * o * (1 - t * t)
        before = tl.load(c + k * sc + at, mask=ok)
        tl.store(dz + k * sg + four, (d * g * i * (1 - i)), mask=ok)
        tl.store(dz + k * sg + four + N, (d * before * f * (1 - f)), mask=ok)
        tl.store(dz + k * sg + four + 2 * N, (d * i * (1 - g * g)), mask=ok)
        tl.store(dz + k * sg + four + 3 * N, (dh * t * o * (1 - o)), mask=ok)
        tl.store(dc + k * B * N + at, d * f, mask=ok)


def segments_of(tokens, steps, count):
    """Inputs and targets [segments, steps, count]; targets beyond the end are -1."""
    x, y = columns(tokens, count)
    padding = (0, 0, 0, -len(x) % steps)
    cut = lambda values, beyond: F.pad(values, padding, value=beyond).reshape(-1, steps, count)
    return cut(x, 0), cut(y, -1)


class Ensemble:
    """The models of a group."""

    def __init__(self, group, vocabulary, texts, device):
        self.name, self.B, self.T, self.epochs = group["name"], group["columns"], group.get("steps", 35), group["epochs"]
        train, valid = (segments_of(text, self.T, self.B) for text in texts)
        units = group["units"]
        self.widths = units if isinstance(units, list) else [units] * 2  # of the layers; words are as wide as the last
        shared = {key: value for key, value in group.items() if key not in GROUP}
        self.given = [{**shared, **m} for m in group["models"]]
        self.models = [{**OPTIONS, **m} for m in self.given]
        self.tied, self.al, self.V, self.device = group.get("head", "tied") == "tied", group["loss"] == "al", vocabulary, device
        K, V, B, T = len(self.models), vocabulary, self.B, self.T
        self.K, self.N, self.layers = K, self.widths[-1], range(len(self.widths))
        new = lambda *shape, dtype=torch.float32: torch.zeros(shape, dtype=dtype, device=device)
        of = lambda key: torch.tensor([m[key] for m in self.models], dtype=torch.float32, device=device)
        shapes = {"E": (V, self.N), "b": (V,)}
        if not self.tied:
            shapes["H"] = (self.N, V)
        for l, n in enumerate(self.widths):
            shapes |= {f"W{l}": (self.widths[l - 1] if l else self.N, 4 * n), f"U{l}": (n, 4 * n), f"b{l}": (4 * n,)}
        self.p = {name: new(K, *shape) for name, shape in shapes.items()}
        for k, m in enumerate(self.models):
            generator = torch.Generator().manual_seed(m["seed"])
            for name, value in self.p.items():
                if not name.startswith("b"):
                    value[k] = torch.empty(shapes[name]).uniform_(-m["init"], m["init"], generator=generator).to(device)
        self.g = {name: torch.zeros_like(value) for name, value in self.p.items()}
        self.start = {name: value.clone() for name, value in self.p.items()}
        self.half = {name: value.to(HALF) for name, value in self.p.items()}
        self.gamma, self.temperature, self.clip = of("gamma"), of("temperature"), of("clip")
        keep = lambda key: torch.tensor([m["keep"] if m[key] is None else m[key] for m in self.models], dtype=torch.float32, device=device)
        self.keep_input, self.keep_state, self.keep_between, self.keep_output = map(keep, ("keep_input", "keep_state", "keep_between", "keep_output"))
        self.keep_words, self.keep_weights, self.ar, self.tar, self.weight_decay = map(of, ("keep_words", "keep_weights", "ar", "tar", "weight_decay"))
        any_of = lambda key: any(m[key] != OPTIONS[key] for m in self.models)
        self.drops_weights, self.penalised, self.decays = any_of("keep_weights"), any_of("ar") or any_of("tar"), any_of("weight_decay")
        self.is_tied_scheme = torch.tensor([m["scheme"] == "tied" for m in self.models], device=device)
        self.train, self.valid = [v.to(device) for v in train], [v.to(device) for v in valid]
        self.segments = len(train[0])
        self.predicted = int((valid[1] >= 0).sum())
        self.rates = torch.tensor([[rate_of(m, self.epochs, e, (s + 0.5) / self.segments) for m in self.models]
                                   for e in range(1, self.epochs + 1) for s in range(self.segments)], device=device)
        self.step_index = new(1, dtype=torch.long)
        self.valid_index = new(1, dtype=torch.long)
        self.c = [new(K, T + 1, B, n) for n in self.widths]
        self.up = [new(K, T + 1, B, n, dtype=HALF) for n in self.widths]
        self.rec = [new(K, T + 1, B, n, dtype=HALF) for n in self.widths]
        self.raw = [new(K, B, n) for n in self.widths]  # the state a segment ends with, unmasked
        self.gates = [new(K, T, B, 4 * n, dtype=HALF) for n in self.widths]
        self.dz = [new(K, T, B, 4 * n, dtype=HALF) for n in self.widths]
        self.ones = [torch.ones(K, B, n, device=device) for n in self.widths]
        self.before = new(K, B, self.N)  # what the head was given last in the segment before
        self.nats = new(K, T * B)
        self.total = new(K, dtype=torch.float64)
        self.curve = new(self.epochs, K, dtype=torch.float64)
        self.first = torch.arange(K, device=device)[:, None] * V

    def restart(self):
        """Start values, masks aside, and the first step."""
        for name, value in self.start.items():
            self.p[name].copy_(value)
            self.half[name].copy_(value)
        self.step_index.zero_()
        self.valid_index.zero_()

    def mask(self, keep, *shape):
        keep = keep.reshape(self.K, *[1] * len(shape))
        return (torch.rand(self.K, *shape, device=self.device) < keep).float() / keep

    def begin(self, text, segment):
        """Inputs [T, B] and targets [T B] of a segment, and 1 if it is the first, which starts from states 0, else 0."""
        x, y = (v.index_select(0, segment)[0] for v in text)
        begins = (segment == 0).float()
        for l in self.layers:
            self.raw[l].mul_(1 - begins)
            self.c[l][:, 0].mul_(1 - begins)
        return x, y.reshape(-1), begins

    def forward(self, x, train):
        """The head's input [K, T B, N]."""
        K, B, T, N, V = self.K, self.B, self.T, self.N, self.V
        self.flat = (self.first + x.reshape(1, -1)).reshape(-1)
        rows = self.half["E"].reshape(K * V, N).index_select(0, self.flat).reshape(K, T, B, N)
        if train:
            self.m_input = self.mask(self.keep_input, 1, B, N)
            self.m_words = self.mask(self.keep_words, V).reshape(-1).index_select(0, self.flat).reshape(K, T, B, 1)
            rows = (rows * self.m_input * self.m_words).to(HALF)
            self.m_rec = [self.mask(self.keep_state, B, n) for n in self.widths]
            free = [self.mask(self.keep_output if l == self.layers[-1] else self.keep_between, B, n) for l, n in enumerate(self.widths)]
            self.m_up = [torch.where(self.is_tied_scheme[:, None, None], r, u) for r, u in zip(self.m_rec, free)]
        else:
            self.m_rec = self.m_up = self.ones
        self.m_U = [self.mask(self.keep_weights, n, 4 * n) if train and self.drops_weights else None for n in self.widths]
        self.U = [self.half[f"U{l}"] if m is None else (self.p[f"U{l}"] * m).to(HALF) for l, m in enumerate(self.m_U)]
        self.inputs, h = [], rows
        for l, n in enumerate(self.widths):
            self.inputs.append(h)
            z = torch.baddbmm(self.half[f"b{l}"].unsqueeze(1), h.reshape(K, T * B, -1), self.half[f"W{l}"]).reshape(K, T, B, 4 * n)
            self.rec[l][:, 0] = self.raw[l] * self.m_rec[l]
            for t in range(T):
                self.cell_forward(l, t, z, torch.bmm(self.rec[l][:, t], self.U[l]))
            h = self.up[l][:, 1:]
        return h.reshape(K, T * B, N)

    def cell_forward(self, l, t, z, zh):
        K, B, N = self.K, self.B, self.widths[l]
        if self.use_kernels:
            grid = (triton.cdiv(B * N, 1024), K)
            lstm_forward_kernel[grid](z[:, t], zh, self.gates[l][:, t], self.c[l][:, t], self.up[l][:, t], self.rec[l][:, t], self.m_up[l],
                                      self.m_rec[l], B, N, z.stride(0), self.gates[l].stride(0), self.c[l].stride(0), BLOCK=1024)
            return
        i, f, g, o = (z[:, t].float() + zh.float()).chunk(4, 2)
        i, f, g, o = torch.sigmoid(i), torch.sigmoid(f), torch.tanh(g), torch.sigmoid(o)
        self.c[l][:, t + 1] = f * self.c[l][:, t] + i * g
        self.gates[l][:, t] = torch.cat([i, f, g, o], 2).to(HALF)
        h = o * torch.tanh(self.c[l][:, t + 1])
        self.up[l][:, t + 1], self.rec[l][:, t + 1] = h * self.m_up[l], h * self.m_rec[l]

    def cell_backward(self, l, t, d_up, d_rec, dc):
        K, B, N = self.K, self.B, self.widths[l]
        if self.use_kernels:
            grid = (triton.cdiv(B * N, 1024), K)
            lstm_backward_kernel[grid](d_up[:, t], d_rec, dc, self.gates[l][:, t], self.c[l][:, t], self.m_up[l], self.m_rec[l], self.dz[l][:, t],
                                       B, N, d_up.stride(0), self.gates[l].stride(0), self.c[l].stride(0), BLOCK=1024)
            return
        i, f, g, o = self.gates[l][:, t].float().chunk(4, 2)
        c, before = torch.tanh(self.c[l][:, t + 1]), self.c[l][:, t]
        dh = d_up[:, t].float() * self.m_up[l] + d_rec.float() * self.m_rec[l]
        d = dc + dh * o * (1 - c * c)
        self.dz[l][:, t] = torch.cat([d * g * i * (1 - i), d * before * f * (1 - f), d * i * (1 - g * g), dh * c * o * (1 - o)], 2).to(HALF)
        dc.copy_(d * f)

    def keep_states(self, l):
        """What the next segment starts from: the unmasked state, o tanh(c)."""
        self.raw[l].copy_(self.gates[l][:, -1, :, 3 * self.widths[l]:].float() * torch.tanh(self.c[l][:, -1]))
        self.c[l][:, 0] = self.c[l][:, -1]

    def logits(self, h):
        if self.tied:
            return torch.bmm(h, self.half["E"].transpose(1, 2))
        return torch.bmm(h, self.half["H"])

    def rows(self, Z, y, train):
        """Logits become gradients; the losses go to self.nats."""
        K, R, V = self.K, self.T * self.B, self.V
        if self.use_kernels:
            rows_kernel[(R, K)](Z, self.p["b"], y, self.gamma, self.temperature, self.nats, V, R, Z.shape[1], 1 / self.B, AL=self.al and train,
                                TRAIN=train, BLOCK=triton.next_power_of_2(V), num_warps=16)
            return
        o = Z[:, :R].float() + self.p["b"].unsqueeze(1)
        log_p, known = torch.log_softmax(o, 2), (y >= 0).float()[None, :]
        at = y.clamp(min=0)[None, :, None].expand(K, R, 1)
        self.nats.copy_(-log_p.gather(2, at)[..., 0] * known)
        if not train:
            return
        use = (known / self.B)[..., None]
        g = log_p.exp()
        g.scatter_add_(2, at, -torch.ones_like(g[..., :1]))
        if self.al:
            tau, weight = self.temperature[:, None, None], self.gamma[:, None, None]
            log_q, log_u = torch.log_softmax(Z[:, R:].float() / tau, 2), torch.log_softmax(o / tau, 2)
            q, ratio = log_q.exp(), log_q - log_u
            kl = (q * ratio).sum(2, keepdim=True)
            g += weight * (log_u.exp() - q)
            Z[:, R:] = (use * weight * q * (ratio - kl)).to(HALF)
        Z[:, :R] = (use * g).to(HALF)

    def step(self):
        """One segment of training."""
        K, B, T, N, V, R = self.K, self.B, self.T, self.N, self.V, self.T * self.B
        x, y, begins = self.begin(self.train, self.step_index % self.segments)
        h = self.forward(x, True)
        if self.al:
            targets = (self.first + y.clamp(min=0)[None, :]).reshape(-1)
            h = torch.cat([h, self.half["E"].reshape(K * V, N).index_select(0, targets).reshape(K, R, N)], 1)
        elif not h.is_contiguous():
            h = h.contiguous()
        if self.al and not self.tied:
            Z = torch.cat([self.logits(h[:, :R]), torch.bmm(h[:, R:], self.half["E"].transpose(1, 2))], 1)
        else:
            Z = self.logits(h)
        self.rows(Z, y, True)
        g = self.g
        g["b"].copy_(Z[:, :R].sum(1, dtype=torch.float32))
        if self.tied:
            dh = torch.bmm(Z, self.half["E"])
            g["E"].copy_(torch.bmm(Z.transpose(1, 2), h))
        else:
            dh = torch.bmm(Z[:, :R], self.half["H"].transpose(1, 2))
            g["H"].copy_(torch.bmm(h[:, :R].transpose(1, 2), Z[:, :R]))
            g["E"].zero_()
            if self.al:
                dh = torch.cat([dh, torch.bmm(Z[:, R:], self.half["E"])], 1)
                g["E"].copy_(torch.bmm(Z[:, R:].transpose(1, 2), h[:, R:]))
        if self.al:
            g["E"].view(K * V, N).index_add_(0, targets, dh[:, R:].reshape(K * R, N).float())
        d = dh[:, :R].reshape(K, T, B, N)
        if self.penalised:
            d = d + self.penalty(begins, y).to(HALF)
        for l in reversed(self.layers):
            n = self.widths[l]
            dc = torch.zeros(K, B, n, device=self.device)
            d_rec = torch.zeros(K, B, n, device=self.device, dtype=HALF)
            for t in reversed(range(T)):
                self.cell_backward(l, t, d, d_rec, dc)
                d_rec = torch.bmm(self.dz[l][:, t], self.U[l].transpose(1, 2))
            dz = self.dz[l].reshape(K, R, 4 * n)
            g[f"U{l}"].copy_(torch.bmm(self.rec[l][:, :T].reshape(K, R, n).transpose(1, 2), dz))
            if self.m_U[l] is not None:
                g[f"U{l}"].mul_(self.m_U[l])
            g[f"W{l}"].copy_(torch.bmm(self.inputs[l].reshape(K, R, -1).transpose(1, 2), dz))
            g[f"b{l}"].copy_(dz.sum(1, dtype=torch.float32))
            d = torch.bmm(dz, self.half[f"W{l}"].transpose(1, 2)).reshape(K, T, B, -1)
        dx = (d.float() * self.m_input * self.m_words).reshape(K * R, N)
        g["E"].view(K * V, N).index_add_(0, self.flat, dx)
        for l in self.layers:
            self.keep_states(l)
        if self.decays:
            for name, value in self.p.items():
                g[name].addcmul_(value, self.weight_decay.reshape(K, *[1] * (value.dim() - 1)))
        norm = torch.stack([value.reshape(K, -1).square().sum(1) for value in g.values()]).sum(0).sqrt()
        rate = self.rates.index_select(0, self.step_index)[0]
        scale = -rate * torch.clamp(self.clip / norm.clamp(min=1e-30), max=1.0)
        for name, value in self.p.items():
            value.addcmul_(g[name], scale.reshape(K, *[1] * (value.dim() - 1)))
            self.half[name].copy_(value)
        self.step_index += 1

    def penalty(self, begins, y):
        """The gradient of (ar |h_t|² + tar |h_t - h_{t-1}|²) / N, summed over the steps of the text, a mean over columns, with respect to h."""
        h = self.up[-1][:, 1:].float()
        self.before.mul_(1 - begins)
        within = (y >= 0).reshape(1, self.T, self.B, 1)
        change = torch.diff(h, dim=1, prepend=self.before.unsqueeze(1)) * within
        self.before.copy_(h[:, -1])
        later = torch.cat([change[:, 1:], torch.zeros_like(change[:, :1])], 1)
        scale = lambda weight: (2 * weight / (self.N * self.B)).reshape(self.K, 1, 1, 1)
        return scale(self.ar) * h * within + scale(self.tar) * (change - later)

    def evaluate_segment(self):
        x, y, begins = self.begin(self.valid, self.valid_index)
        self.total.mul_(1 - begins.double())
        h = self.forward(x, False)
        self.rows(self.logits(h), y, False)
        self.total += self.nats.double().sum(1)
        for l in self.layers:
            self.keep_states(l)
        self.valid_index.copy_((self.valid_index + 1) % len(self.valid[0]))

    def record(self, epoch):
        """Keeps the validation perplexities of an epoch, counted from 1, on the device."""
        self.curve[epoch - 1].copy_((self.total / self.predicted).exp())

    def compile(self, gpu):
        """On a GPU: records the graphs of a step and of a segment of validation."""
        self.use_kernels, self.stream = gpu or (triton is not None and os.environ.get("TRITON_INTERPRET") == "1"), None
        if not gpu:
            self.train_once, self.evaluate_once = self.step, self.evaluate_segment
            return
        self.stream = torch.cuda.Stream()
        self.stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self.stream):
            for _ in range(2):
                self.step()
                self.evaluate_segment()
        torch.cuda.synchronize()
        graphs = []
        for body in (self.step, self.evaluate_segment):
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph, stream=self.stream):
                body()
            graphs.append(graph)
        self.train_once, self.evaluate_once = graphs[0].replay, graphs[1].replay
        self.restart()
        torch.cuda.synchronize()
