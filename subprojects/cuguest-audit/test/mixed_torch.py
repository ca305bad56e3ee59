#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""mixed_torch.py SEED: what programs do with PyTorch, in an order that the seed decides: training, streams, captured
graphs, threads, worker processes, libraries, copies, and errors that are caught."""

import random
import sys
import threading

import torch

DEVICE = "cuda"


def train_a_transformer():
    layer = torch.nn.TransformerEncoderLayer(128, 4, 256, batch_first=True)
    model = torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).to(DEVICE)
    optimizer = torch.optim.AdamW(model.parameters())
    batch = torch.randn(8, 32, 128, device=DEVICE)
    for _ in range(20):
        optimizer.zero_grad()
        with torch.autocast(DEVICE):
            loss = model(batch).square().mean()
        loss.backward()
        optimizer.step()


def train_convolutions():
    model = torch.nn.Sequential(torch.nn.Conv2d(3, 16, 3), torch.nn.BatchNorm2d(16), torch.nn.ReLU(),
                                torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(16, 10)).to(DEVICE)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for _ in range(10):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(torch.randn(16, 3, 32, 32, device=DEVICE)),
                                          torch.randint(10, (16,), device=DEVICE)).backward()
        optimizer.step()


def use_streams():
    streams = [torch.cuda.Stream() for _ in range(4)]
    event, one = torch.cuda.Event(enable_timing=True), torch.randn(256, 256, device=DEVICE)
    event.record()
    for stream in streams:
        stream.wait_event(event)
        with torch.cuda.stream(stream):
            one.record_stream(stream)
            (one @ one).sum()
    for stream in streams:
        stream.synchronize()


def replay_a_graph():
    one = torch.randn(64, 64, device=DEVICE)
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            one @ one
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = one @ one + 1
    for _ in range(10):
        graph.replay()
    assert result.shape == (64, 64)


def work_on_threads():
    def work():
        with torch.cuda.stream(torch.cuda.Stream()):
            weight = torch.randn(64, 64, device=DEVICE, requires_grad=True)
            (torch.randn(64, 64, device=DEVICE) @ weight).sum().backward()
    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def load_with_workers():
    data = torch.utils.data.TensorDataset(torch.randn(64, 8))
    for (batch,) in torch.utils.data.DataLoader(data, batch_size=16, num_workers=2, pin_memory=True):
        batch.to(DEVICE, non_blocking=True).sum()


def call_libraries():
    one = torch.randn(128, 128, device=DEVICE)
    torch.fft.fft2(one).abs().sum()
    torch.linalg.solve(one + 128 * torch.eye(128, device=DEVICE), one)
    torch.linalg.svd(one)
    torch.sparse.mm(one.relu().to_sparse(), one)


def copy():
    pinned = torch.randn(1 << 16).pin_memory()
    there = pinned.to(DEVICE, non_blocking=True)
    there.cpu()
    torch.cuda.empty_cache()
    torch.cuda.mem_get_info()
    torch.cuda.memory_stats()


def fail():
    try:
        torch.empty(1 << 60, device=DEVICE)
    except RuntimeError:
        pass


def main():
    kinds = [train_a_transformer, train_convolutions, use_streams, replay_a_graph, work_on_threads, load_with_workers,
             call_libraries, copy, fail]
    order = random.Random(int(sys.argv[1]))
    torch.manual_seed(0)
    for _ in range(3):
        for kind in order.sample(kinds, len(kinds)):
            kind()
    torch.cuda.synchronize()


if __name__ == "__main__":
    main()
