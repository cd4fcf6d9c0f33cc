"""What pytorch_kernels.py times: for each kernel of a list a function that runs it once with PyTorch."""

import inspect


def dtype_of(torch, precision):
    """TF32 is how products of fp32 are computed, not how values are stored."""
    return {"fp16": torch.float16, "bf16": torch.bfloat16}.get(precision, torch.float32)


def sizes_of(row):
    """The numbers in a shape such as "m=64 n=64 k=64 ta=0 tb=1"."""
    return {key: int(value) for key, value in (word.split("=") for word in row["shape"].split())}


class Functions:
    """Makes, for a row of a list, the function to time."""

    def __init__(self, torch, device, precision):
        self.torch, self.device = torch, device
        self.dtype = dtype_of(torch, precision)
        self.narrow = self.dtype != torch.float32
        self.in_parts = precision != "fp32"  # layers are several kernels each
        torch.manual_seed(1)

    def tensor(self, *shape, gradient=True, dtype=None):
        out = self.torch.randn(*shape, device=self.device, dtype=dtype or self.dtype)
        if self.narrow and len(shape) == 4:
            out = out.contiguous(memory_format=self.torch.channels_last)
        return out.requires_grad_(gradient)

    def scale(self, *shape):
        """Parameters of norms, which stay in fp32."""
        return self.tensor(*shape, dtype=self.torch.float32)

    def of(self, row):
        kind = row["kind"]
        if kind == "gradient_sum":
            values = row["batch"] * row["out_channels"] * row["out_height"] * row["out_width"] * row["out_depth"]
            parts = [self.tensor(values, gradient=False) for _ in range(row["inputs"])]
            return lambda: sum(parts[1:], start=parts[0])
        if kind == "update":
            return self.update(row)
        if kind == "product":
            return self.plain_product(row)
        if kind == "bias":
            return self.bias(row)
        if self.in_parts and kind == "softmax":
            kind = "loss"
        if row["variant"] in ("rms", "rotary"):
            kind = {"rms": "rms_norm"}.get(row["variant"], row["variant"])
        forward, wanted_data, wanted_weights = getattr(self, kind)(row)
        if row["pass"] == "forward":
            return forward
        out = forward()
        gradient = self.torch.randn_like(out)
        wanted = {"backward_data": wanted_data, "backward_weights": wanted_weights}.get(
            row["pass"], wanted_data + wanted_weights)
        return lambda: self.torch.autograd.grad(out, wanted, gradient, retain_graph=True)

    def update(self, row):
        torch = self.torch
        parameter = torch.nn.Parameter(self.tensor(row["parameters"], gradient=False, dtype=torch.float32))
        parameter.grad = self.tensor(row["parameters"], gradient=False, dtype=torch.float32)
        name = row["shape"].split()[0].removeprefix("op=update_")
        kind, options = {"sgd": (torch.optim.SGD, {}), "momentum": (torch.optim.SGD, {"momentum": 0.9}),
                         "adam": (torch.optim.Adam, {})}[name]
        if self.device == "cuda" and "fused" in inspect.signature(kind).parameters:
            options["fused"] = True
        return kind([parameter], lr=1e-6, **options).step

    def image(self, row):
        """The input, with the depth first if there is one."""
        deep = [row["depth"]] if row["depth"] > 1 else []
        return self.tensor(row["batch"], row["channels"], *deep, row["height"], row["width"])

    def window(self, row):
        """Directions that a window slides in: size, stride, padding before and after."""
        names = (["depth"] if row["depth"] > 1 else []) + ["height", "width"]
        out = []
        for name in names:
            slices = name == "depth" and row["kernel_depth"] == 1 and row["out_depth"] == row["depth"]
            stride = 1 if slices else row["stride"]
            size, before = row[f"kernel_{name}"], row[f"padding_{name}"]
            extent = row["dilation"] * (size - 1) + 1
            after = max(0, (row[f"out_{name}"] - 1) * stride + extent - row[name] - before)
            out.append((size, stride, before, after))
        return out

    def padded(self, x, window):
        pads = [side for _, _, before, after in reversed(window) for side in (before, after)]
        return self.torch.nn.functional.pad(x, pads).detach().requires_grad_() if any(pads) else x

    def convolution(self, row):
        functional, window = self.torch.nn.functional, self.window(row)
        x = self.image(row)
        if row["variant"] == "transposed":
            return self.transposed_convolution(row, x, window)
        padding = tuple(before for _, _, before, _ in window)
        if any(after > before for _, _, before, after in window):  # uneven, as `same` may be
            x, padding = self.padded(x, window), (0,) * len(window)
        weight = self.tensor(row["out_channels"], row["channels"] // row["groups"], *(w[0] for w in window))
        convolve = functional.conv3d if len(window) == 3 else functional.conv2d
        stride = tuple(w[1] for w in window)
        return (lambda: convolve(x, weight, None, stride, padding, row["dilation"], row["groups"])), [x], [weight]

    def transposed_convolution(self, row, x, window):
        functional, names = self.torch.nn.functional, ["depth", "height", "width"][-len(window):]
        size, stride, padding = (tuple(w[i] for w in window) for i in range(3))
        # Rows behind the output, by the size that it has and that it would have without them.
        behind = tuple(row[f"out_{n}"] - (row[n] - 1) * w[1] + 2 * w[2] - row["dilation"] * (w[0] - 1) - 1
                       for n, w in zip(names, window))
        weight = self.tensor(row["channels"], row["out_channels"] // row["groups"], *size)
        spread = functional.conv_transpose3d if len(window) == 3 else functional.conv_transpose2d
        return (lambda: spread(x, weight, None, stride, padding, behind, row["groups"], row["dilation"])), [x], [weight]

    def product(self, rows, inputs, outputs):
        x, weight = self.tensor(rows, inputs), self.tensor(outputs, inputs)
        return (lambda: self.torch.nn.functional.linear(x, weight)), [x], [weight]

    def plain_product(self, row):
        """C (m x n) = A (m x k) B (k x n) column by column, as the shape says: row by row its transpose."""
        size = sizes_of(row)
        m, n, k, count = size["m"], size["n"], size["k"], size.get("count", 1)
        side = [] if count == 1 else [count]
        a = self.tensor(*side, m, k, gradient=False).transpose(-1, -2) if size["ta"] else \
            self.tensor(*side, k, m, gradient=False)
        b = self.tensor(*side, k, n, gradient=False).transpose(-1, -2) if size["tb"] else \
            self.tensor(*side, n, k, gradient=False)
        return lambda: b @ a

    def fused_attention(self, row):
        size = sizes_of(row)
        functional = self.torch.nn.functional

        def part(heads, length, features):
            rows = self.torch.randn(size["batch"], length, heads, features, device=self.device, dtype=self.dtype)
            return rows.transpose(1, 2).requires_grad_()

        query = part(size["heads"], size["queries"], size["key_features"])
        key = part(size["kv_heads"], size["keys"], size["key_features"])
        value = part(size["kv_heads"], size["keys"], size["value_features"])
        shared = size["kv_heads"] != size["heads"]
        return (lambda: functional.scaled_dot_product_attention(
            query, key, value, is_causal=size["causal"] == 1, enable_gqa=shared)), [query, key, value], []

    def rms_norm(self, row):
        x, scale = self.sequence(row), self.tensor(row["channels"])
        norm = getattr(self.torch.nn.functional, "rms_norm", None)  # since PyTorch 2.4
        if norm:
            return (lambda: norm(x, (row["channels"],), scale)), [x], [scale]
        return (lambda: x * self.torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * scale), [x], [scale]

    def rotary(self, row):
        """As models of Hugging Face's transformers do: x cos + rotate_half(x) sin."""
        torch, features = self.torch, row["channels"] // max(1, row["heads"])
        turned = self.sequence(row)
        cos, sin = (self.tensor(row["width"], features // 2, gradient=False).repeat(1, 2) for _ in range(2))

        def turn():
            x = turned.view(row["batch"], row["width"], -1, features).transpose(1, 2)
            half = torch.cat((-x[..., features // 2:], x[..., :features // 2]), -1)
            return x * cos + half * sin

        return turn, [turned], []

    def bias(self, row):
        """The gradient of a bias: the sum over all positions."""
        gradient = self.tensor(row["batch"] * row["out_width"] * row["out_height"] * row["out_depth"],
                               row["out_channels"], gradient=False)
        return lambda: gradient.sum(0)

    def loss(self, row):
        """Cross-entropy in fp32 of logits."""
        torch, positions = self.torch, row["batch"] * row["width"] * row["height"]
        x = self.tensor(positions, row["channels"])
        wanted = torch.randint(row["channels"], (positions,), device=self.device)
        return (lambda: torch.nn.functional.cross_entropy(x.float(), wanted)), [x], []

    def scores_softmax(self, row):
        values = int(row["shape"].split("values=")[1]) // (2 if row["pass"] == "forward" else 3)
        x = self.tensor(max(1, values // row["width"]), row["width"])
        return (lambda: self.torch.softmax(x, 1)), [x], []

    def scores_dropout(self, row):
        x = self.tensor(int(int(row["shape"].split("values=")[1]) / (2 + 8 / self.torch.finfo(self.dtype).bits)))
        return (lambda: self.torch.nn.functional.dropout(x, 0.1)), [x], []

    def fully_connected(self, row):
        return self.product(row["batch"], row["input_values"], row["out_channels"])

    def linear(self, row):
        return self.product(row["batch"] * row["width"] * row["height"] * row["depth"], row["channels"],
                            row["out_channels"])

    def pooling(self, row):
        functional, window = self.torch.nn.functional, self.window(row)
        x = self.padded(self.image(row), window)
        name = ("max" if row["variant"] == "max" else "avg") + f"_pool{len(window)}d"
        size, stride = tuple(w[0] for w in window), tuple(w[1] for w in window)
        return (lambda: getattr(functional, name)(x, size, stride)), [x], []

    def batch_norm(self, row):
        if row["variant"] == "frozen":
            x, fixed = self.image(row), self.tensor(row["channels"], *[1] * (3 if row["depth"] > 1 else 2), gradient=False)
            return (lambda: x * fixed + fixed), [x], []
        x, scale, shift = self.image(row), self.scale(row["channels"]), self.scale(row["channels"])
        norm = self.torch.nn.functional.batch_norm
        return (lambda: norm(x, None, None, scale, shift, training=True)), [x], [scale, shift]

    def sequence(self, row):
        return self.tensor(row["batch"], row["width"] * row["height"] * row["depth"], row["channels"])

    def layer_norm(self, row):
        x, scale, shift = self.sequence(row), self.tensor(row["channels"]), self.tensor(row["channels"])
        norm = self.torch.nn.functional.layer_norm
        return (lambda: norm(x, (row["channels"],), scale, shift)), [x], [scale, shift]

    def local_response_norm(self, row):
        x = self.image(row)
        return (lambda: self.torch.nn.functional.local_response_norm(x, row["neighbours"])), [x], []

    def activation(self, row):
        x = self.image(row)
        if row["variant"] == "gated_tanh":
            value, gate = x.chunk(2, dim=1)
            return (lambda: self.torch.tanh(value) * self.torch.sigmoid(gate)), [x], []
        if row["variant"] == "swiglu":
            gate, value = self.sequence(row).chunk(2, dim=-1)
            gate, value = gate.detach().requires_grad_(), value.detach().requires_grad_()
            return (lambda: self.torch.nn.functional.silu(gate) * value), [gate, value], []
        functional = self.torch.nn.functional
        named = {"gelu": functional.gelu, "silu": functional.silu, "leaky_relu": functional.leaky_relu}
        function = named.get(row["variant"]) or getattr(self.torch, row["variant"])
        return (lambda: function(x)), [x], []

    def softmax(self, row):
        x = self.image(row)
        return (lambda: self.torch.softmax(x, 1)), [x], []

    def dropout(self, row):
        x = self.image(row)
        return (lambda: self.torch.nn.functional.dropout(x)), [x], []

    def parts(self, row):
        share = row["input_values"] // row["inputs"] * row["batch"]
        return [self.tensor(share) for _ in range(row["inputs"])]

    def add(self, row):
        parts = self.parts(row)
        return (lambda: sum(parts[1:], start=parts[0])), parts, []

    def concat(self, row):
        values = row["input_values"] // row["inputs"]
        parts = [self.tensor(row["batch"], values) for _ in range(row["inputs"])]
        return (lambda: self.torch.cat(parts, 1)), parts, []

    def multiply(self, row):
        parts = self.parts(row)
        return (lambda: parts[0] * parts[1]), parts[:2], []

    def embedding(self, row):
        torch, units = self.torch, row["out_channels"]
        table = self.tensor(row["parameters"] // units, units)
        if row["variant"] == "position":
            x = self.sequence(row)
            return (lambda: x + table[:x.shape[1]]), [x], [table]
        tokens = torch.randint(table.shape[0], (row["batch"], row["out_width"]), device=self.device)
        return (lambda: torch.nn.functional.embedding(tokens, table)), [], [table]

    def attention(self, row):
        # One stacked input of query, key and value; with three inputs, `channels` are those of the query.
        stacked = 3 if row["inputs"] == 1 else 1
        heads, features = row["heads"], row["channels"] // stacked // row["heads"]
        shape = (row["batch"], heads, row["width"], features)
        parts = [self.tensor(*shape) for _ in range(3)]
        attend = self.torch.nn.functional.scaled_dot_product_attention
        return (lambda: attend(*parts, is_causal=row["variant"] == "causal")), parts, []

    def lstm(self, row):
        layer = self.torch.nn.LSTM(row["channels"], row["out_channels"], batch_first=True).to(self.device)
        x = self.sequence(row)
        return (lambda: layer(x)[0]), [x], list(layer.parameters())
