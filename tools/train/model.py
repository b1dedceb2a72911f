"""A llama decoder whose last third of layers reads its values from a bank (BoV), for training on one CPU core.

RoPE rotates interleaved pairs, as GGUF's llama does, so that export needs no permutation.
"""

import ctypes
import math
import os
import subprocess

import torch
from torch import nn


def _load():
    here = os.path.dirname(os.path.abspath(__file__))
    out = os.path.join(os.environ.get("TMPDIR", "/tmp"), "train_kernels_%d.so" % os.getuid())
    src = os.path.join(here, "kernels.c")
    if not os.path.exists(out) or os.path.getmtime(out) < os.path.getmtime(src):
        subprocess.run(
            ["gcc", "-O3", "-march=native", "-ffast-math", "-shared", "-fPIC", src, "-o", out + ".new", "-lm"],
            check=True,
        )
        os.replace(out + ".new", out)
    return ctypes.CDLL(out)


K = _load()


def ptr(t):
    assert t.is_contiguous()
    return ctypes.c_void_p(t.data_ptr())


def i64(n):
    return ctypes.c_int64(n)


def f32(x):
    return ctypes.c_float(x)


class RmsNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w, eps):
        x = x.contiguous()
        d = x.shape[-1]
        n = x.numel() // d
        out, inv = torch.empty_like(x), torch.empty(n)
        K.rmsnorm(ptr(x), ptr(w), ptr(out), ptr(inv), i64(n), i64(d), f32(eps))
        ctx.save_for_backward(x, w, inv)
        return out

    @staticmethod
    def backward(ctx, dout):
        x, w, inv = ctx.saved_tensors
        dout = dout.contiguous()
        dx, dw = torch.empty_like(x), torch.zeros_like(w)
        K.rmsnorm_back(ptr(x), ptr(w), ptr(inv), ptr(dout), ptr(dx), ptr(dw), i64(inv.numel()), i64(w.numel()))
        return dx, dw, None


class Swiglu(torch.autograd.Function):
    @staticmethod
    def forward(ctx, gate, up):
        out = torch.empty_like(gate)
        K.swiglu(ptr(gate), ptr(up), ptr(out), i64(out.numel()))
        ctx.save_for_backward(gate, up)
        return out

    @staticmethod
    def backward(ctx, dout):
        gate, up = ctx.saved_tensors
        dout = dout.contiguous()
        dg, du = torch.empty_like(gate), torch.empty_like(up)
        K.swiglu_back(ptr(gate), ptr(up), ptr(dout), ptr(dg), ptr(du), i64(dout.numel()))
        return dg, du


class Rope(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, cos, sin):
        ctx.tables = cos, sin
        return Rope.turn(x, cos, sin, 1.0)

    @staticmethod
    def backward(ctx, dout):
        return Rope.turn(dout, *ctx.tables, -1.0), None, None

    @staticmethod
    def turn(x, cos, sin, sign):
        out = x.clone(memory_format=torch.contiguous_format)
        b, t, h, d = out.shape
        K.rope(ptr(out), ptr(cos), ptr(sin), i64(b), i64(t), i64(h), i64(d), f32(sign))
        return out


class AttnSoftmax(torch.autograd.Function):
    @staticmethod
    def forward(ctx, s, start, scale):
        b, h, t, _ = s.shape
        K.attn_softmax(ptr(s), ptr(start), i64(b * h), i64(h), i64(t), f32(scale))
        ctx.mark_dirty(s)
        ctx.save_for_backward(s, start)
        ctx.scale = scale
        return s

    @staticmethod
    def backward(ctx, d):
        p, start = ctx.saved_tensors
        d = d.clone(memory_format=torch.contiguous_format)
        b, h, t, _ = p.shape
        K.attn_softmax_back(ptr(d), ptr(p), ptr(start), i64(b * h), i64(h), i64(t), f32(ctx.scale))
        return d, None, None


class HeadLoss(torch.autograd.Function):
    """sum(weight * cross-entropy) of x @ emb.T; the logits never outlive the forward pass."""

    @staticmethod
    def forward(ctx, x, emb, target, weight):
        z = x @ emb.t()
        rows = torch.empty(x.shape[0])
        K.xent(ptr(z), ptr(target), ptr(weight), ptr(rows), i64(z.shape[0]), i64(z.shape[1]))
        ctx.save_for_backward(
            z @ emb if ctx.needs_input_grad[0] else rows, z.t() @ x if ctx.needs_input_grad[1] else rows
        )
        ctx.mark_non_differentiable(rows)
        return (rows * weight).sum(), rows

    @staticmethod
    def backward(ctx, dloss, _):
        dx, demb = ctx.saved_tensors
        return dx * dloss, demb * dloss, None, None


class Config:
    def __init__(self, **kw):
        self.layers, self.dim, self.heads, self.kv_heads, self.ffn = 6, 256, 4, 4, 640
        self.vocab, self.context, self.eps, self.theta = 4096, 512, 1e-5, 10000.0
        self.__dict__.update(kw)

    @property
    def head_dim(self):
        return self.dim // self.heads

    def bank(self, layer):
        return layer >= 2 * self.layers // 3


class Layer(nn.Module):
    def __init__(self, c, index):
        super().__init__()
        self.c, self.is_bank = c, c.bank(index)
        kv = c.kv_heads * c.head_dim

        def matrix(rows, cols, gain=1.0):
            return nn.Parameter(torch.empty(rows, cols).uniform_(-1, 1) * gain * math.sqrt(3.0 / cols))

        depth = 1 / math.sqrt(2 * c.layers)
        self.attn_norm, self.ffn_norm = nn.Parameter(torch.ones(c.dim)), nn.Parameter(torch.ones(c.dim))
        self.q, self.k, self.o = matrix(c.dim, c.dim), matrix(kv, c.dim), matrix(c.dim, c.dim, depth)
        self.gate, self.up, self.down = matrix(c.ffn, c.dim), matrix(c.ffn, c.dim), matrix(c.dim, c.ffn, depth)
        if self.is_bank:
            self.bank, self.gamma = nn.Parameter(torch.empty(c.vocab, kv)), nn.Parameter(torch.ones(1))
        else:
            self.v = matrix(kv, c.dim)

    def init_bank(self, emb):
        """Bank rows as a values matrix would give them for the bare token (the x0 Wv variant)."""
        kv = self.bank.shape[1]
        wv = torch.empty(kv, emb.shape[1]).uniform_(-1, 1) * math.sqrt(3.0 / emb.shape[1])
        rms = emb * (emb.pow(2).mean(1, keepdim=True) + self.c.eps).rsqrt()
        self.bank.data.copy_(rms @ wv.t())

    def forward(self, x, ids, start, cos, sin):
        c = self.c
        b, t, _ = x.shape
        n = RmsNorm.apply(x, self.attn_norm, c.eps)
        q = Rope.apply((n @ self.q.t()).view(b, t, c.heads, c.head_dim), cos, sin).transpose(1, 2)
        k = Rope.apply((n @ self.k.t()).view(b, t, c.kv_heads, c.head_dim), cos, sin).transpose(1, 2)
        v = nn.functional.embedding(ids, self.bank) if self.is_bank else n @ self.v.t()
        v = v.view(b, t, c.kv_heads, c.head_dim).transpose(1, 2)
        if c.kv_heads != c.heads:
            k, v = (z.repeat_interleave(c.heads // c.kv_heads, 1) for z in (k, v))
        p = AttnSoftmax.apply(q @ k.transpose(2, 3), start, 1 / math.sqrt(c.head_dim))
        y = (p @ v).transpose(1, 2).reshape(b, t, c.dim)
        if self.is_bank:
            y = y * self.gamma
        x = x + y @ self.o.t()
        n = RmsNorm.apply(x, self.ffn_norm, c.eps)
        return x + Swiglu.apply(n @ self.gate.t(), n @ self.up.t()) @ self.down.t()


class Model(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.c = c
        self.emb = nn.Parameter(torch.randn(c.vocab, c.dim) * 0.05)
        self.layers = nn.ModuleList(Layer(c, i) for i in range(c.layers))
        self.norm = nn.Parameter(torch.ones(c.dim))
        for layer in self.layers:
            if layer.is_bank:
                layer.init_bank(self.emb.data)
        freq = c.theta ** (-torch.arange(0, c.head_dim, 2).float() / c.head_dim)
        angle = torch.arange(c.context).float()[:, None] * freq
        self.cos, self.sin = angle.cos().contiguous(), angle.sin().contiguous()

    def hidden(self, ids, start):
        x = nn.functional.embedding(ids, self.emb)
        for layer in self.layers:
            x = layer(x, ids, start, self.cos, self.sin)
        return RmsNorm.apply(x, self.norm, self.c.eps)

    def loss(self, ids, start, target, weight):
        """(weighted sum, cross-entropy of each position); ids, start, target, weight are [B, T]."""
        h = self.hidden(ids, start).view(-1, self.c.dim)
        keep = (weight.view(-1) > 0).nonzero().view(-1)
        return HeadLoss.apply(h[keep], self.emb, target.view(-1)[keep].contiguous(), weight.view(-1)[keep].contiguous())

    def next_logits(self, ids):
        """Logits after the last of a list of ids (greedy checks during training)."""
        t = torch.tensor([ids])
        start = torch.zeros(1, len(ids), dtype=torch.int32)
        with torch.no_grad():
            return self.hidden(t, start)[0, -1] @ self.emb.t()


class AdamW:
    """AdamW with a learning rate per group: (parameters, lr, betas, decay)."""

    def __init__(self, groups):
        self.groups, self.step_count = groups, 0
        self.state = {p: (torch.zeros_like(p), torch.zeros_like(p)) for g in groups for p in g["params"]}

    def step(self, scale):
        self.step_count += 1
        for g in self.groups:
            b1, b2 = g["betas"]
            c1, c2 = 1 - b1**self.step_count, math.sqrt(1 - b2**self.step_count)
            lr = g["lr"] * scale
            for p in g["params"]:
                if p.grad is None:
                    continue
                m, v = self.state[p]
                K.adamw(
                    ptr(p.data),
                    ptr(p.grad.contiguous()),
                    ptr(m),
                    ptr(v),
                    i64(p.numel()),
                    f32(lr * c2 / c1),
                    f32(b1),
                    f32(b2),
                    f32(1e-8 * c2),
                    f32(1 - lr * g["decay"]),
                )
                p.grad = None
