from typing import Any

def forward_body(kind: str, element: str):
    from baracuda_kernels.lang import simd, vmath
    from numba import types
    LANES, BLOCK = simd.LANES, simd.BLOCK
    ROOM = 8192
    load, load_part = simd.load, simd.load_part
    real = simd.widened(element)

    @simd.inline
    def row(x, xo, xs, y, yo, ys, n, e):
        top = load_part(x, xo, xs, 0) - np_inf
        i = 0
        while i + LANES <= n:
            top = simd.maximum(top, load(x, xo + i, xs))
            i += LANES
        if i < n:
            v = load_part(x, xo + i, xs, n - i)
            top = simd.maximum(top, simd.where(simd.iota_below(n - i), v, top))
        m = simd.largest(top)
        s = 0.0
        i = 0
        while i < n:
            stop = min(i + BLOCK, n)
            acc = load_part(x, xo, xs, 0)
            while i + LANES <= stop:
                v = vmath.exp(load(x, xo + i, xs) - m)
                simd.store(e, i, 1, v)
                acc = acc + v
                i += LANES
            if i < stop:
                v = vmath.exp(load_part(x, xo + i, xs, n - i) - m)
                v = simd.where(simd.iota_below(n - i), v, v*0.0)
                simd.store(e, i, 1, v)
                acc = acc + v
                i = stop
            s += simd.tree_sum(acc)
        inv = 1.0 / s
        i = 0
        while i + LANES <= n:
            STORE(y, yo + i, ys, load(e, i, 1) * inv)
            i += LANES
        if i < n:
            simd.store_part(y, yo + i, ys, load(e, i, 1) * inv, n - i)
    np_inf = float("inf")
    import os
    STORE = simd.stream_store if os.environ.get("NT") else simd.store

    def body(words, counter, x, y):
        rows, n, per = words[0], words[1], words[2]
        e = simd.scratch(real(0), ROOM)
        tasks = (rows + per - 1) // per
        t = simd.claim(counter) 
        while t < tasks:
            for r in range(t * per, min(rows, t*per+per)):
                row(x, r * n, 1, y, r * n, 1, n, e)
            t = simd.claim(counter)
    return body, (simd.words, simd.words, simd.pointer_to(element), simd.pointer_to(element))
