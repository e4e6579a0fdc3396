"""Trains a classifier on drawn digits, data-parallel over all ranks of the job, with Python's standard library alone.

The same shape as examples/digits, for machines where nothing can be installed: every rank holds the model and its share
of each batch, and the gradients are averaged over TCP. Rank 0 listens at MASTER_ADDR:MASTER_PORT, adds up what the
others send and gives the sum back; real training uses a ring, but for 650 numbers a hub is as fast and a tenth as long.
"""

import argparse
import array
import json
import math
import os
import random
import socket
import struct
import sys
import time
from operator import mul

from events import EventWriter

PIXELS = 64
CLASSES = 10
TRAIN_SAMPLES = 1200
TEST_SAMPLES = 300
CHECKPOINT = "checkpoint.json"
MEETING_SECONDS = 60

# 5 x 7 pixels for each digit, a row per number, as on old displays.
GLYPHS = [
    (14, 17, 19, 21, 25, 17, 14), (4, 12, 4, 4, 4, 4, 14), (14, 17, 1, 2, 4, 8, 31), (31, 2, 4, 2, 1, 17, 14),
    (2, 6, 10, 18, 31, 2, 2), (31, 16, 30, 1, 1, 17, 14), (6, 8, 16, 30, 17, 17, 14), (31, 1, 2, 4, 8, 8, 8),
    (14, 17, 17, 14, 17, 17, 14), (14, 17, 17, 15, 1, 2, 12),
]  # fmt: skip


def main():
    options = parse_options()
    rank, ranks = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
    if options.batch % ranks:
        sys.exit(f"error: the batch of {options.batch} cannot be shared equally by {ranks} ranks")
    group = Group(rank, ranks)
    print(f"rank {rank} of {ranks} is here", flush=True)

    samples = draw_digits(random.Random(42), TRAIN_SAMPLES + TEST_SAMPLES)
    train, test = samples[:TRAIN_SAMPLES], samples[TRAIN_SAMPLES:]
    first_epoch, weights = start_state(group)
    writer = EventWriter(os.environ.get("DANLU_OUTPUT_DIR", "./runs")) if rank == 0 else None

    share = options.batch // ranks
    began = time.monotonic()
    accuracy = evaluate(weights, test)
    for epoch in range(first_epoch, options.epochs):
        # The order depends on the epoch alone: every rank, and every attempt that resumes, draws the same one.
        order = list(range(TRAIN_SAMPLES))
        random.Random(f"{options.seed} {epoch}").shuffle(order)
        losses = []
        for start in range(0, TRAIN_SAMPLES - options.batch + 1, options.batch):
            mine = order[start + rank * share : start + (rank + 1) * share]
            loss, gradients = loss_and_gradients(weights, [train[index] for index in mine])
            total = group.sum([loss, *gradients])
            losses.append(total[0] / options.batch)
            scale = options.rate / options.batch
            weights = [weight - scale * gradient for weight, gradient in zip(weights, total[1:])]
        loss = sum(losses) / len(losses)
        accuracy = evaluate(weights, test)
        if rank == 0:
            report(epoch, options.epochs, loss, accuracy, writer)
            save(weights, epoch + 1)

    if rank == 0:
        writer.close()
        seconds = time.monotonic() - began
        print(f"trained on {ranks} rank{'s' * (ranks > 1)} in {seconds:.1f} s; TensorBoard file {writer.path}")
        print(f"final accuracy {accuracy:.3f}", flush=True)
    group.close()
    if accuracy < options.expect:
        sys.exit(f"error: accuracy {accuracy:.3f} is below {options.expect}")


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=15)
    parser.add_argument("--batch", type=int, default=60, help="samples in a step, over all ranks")
    parser.add_argument("--rate", type=float, default=0.5, help="learning rate")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--expect", type=float, default=0.9, help="fail when the final accuracy is below this")
    return parser.parse_args()


class Group:
    """All ranks of the job, as torchrun counts them; `sum` adds lists of numbers up, element by element, for everyone."""

    def __init__(self, rank, ranks):
        self.rank = rank
        self.peers = []
        if ranks == 1:
            return
        address = (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))
        self.peers = self._await_others(address, ranks) if rank == 0 else [self._find_first(address, rank)]

    def _await_others(self, address, ranks):
        by_rank = {}
        with socket.create_server(address, backlog=ranks) as listener:
            listener.settimeout(MEETING_SECONDS)
            while len(by_rank) < ranks - 1:
                try:
                    peer, _ = listener.accept()
                except TimeoutError:
                    missing = sorted(set(range(1, ranks)) - set(by_rank))
                    sys.exit(f"error: ranks {missing} did not come within {MEETING_SECONDS} s")
                peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                by_rank[struct.unpack("<I", receive(peer, 4))[0]] = peer
        # In the order of ranks, so that sums come out the same in every run.
        return [by_rank[rank] for rank in sorted(by_rank)]

    def _find_first(self, address, rank):
        until = time.monotonic() + MEETING_SECONDS
        while True:
            try:
                peer = socket.create_connection(address, timeout=MEETING_SECONDS)
                break
            except OSError as error:
                if time.monotonic() > until:
                    sys.exit(f"error: rank 0 does not answer at {address}: {error}")
                time.sleep(0.05)
        peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        peer.sendall(struct.pack("<I", rank))
        return peer

    def sum(self, numbers):
        mine = array.array("d", numbers)
        if not self.peers:
            return mine
        size = len(mine) * mine.itemsize
        if self.rank != 0:
            self.peers[0].sendall(mine.tobytes())
            return array.array("d", receive(self.peers[0], size))
        for peer in self.peers:
            mine = array.array("d", map(float.__add__, mine, array.array("d", receive(peer, size))))
        for peer in self.peers:
            peer.sendall(mine.tobytes())
        return mine

    def close(self):
        for peer in self.peers:
            peer.close()


def receive(peer, size):
    data = bytearray()
    while len(data) < size:
        part = peer.recv(size - len(data))
        if not part:
            sys.exit("error: another rank went away")
        data += part
    return bytes(data)


def draw_digits(dice, count):
    """Pictures of 8 x 8 pixels with a constant 1 appended: glyphs moved about, unevenly inked, with specks."""
    samples = []
    for index in range(count):
        digit = index % CLASSES
        right, down, ink = 1 + dice.randrange(2), dice.randrange(2), dice.uniform(0.5, 1.0)
        picture = [max(0.0, dice.gauss(0.1, 0.15)) for _ in range(PIXELS)]
        for row, bits in enumerate(GLYPHS[digit]):
            for column in range(5):
                if bits >> (4 - column) & 1 and dice.random() > 0.03:
                    picture[(row + down) * 8 + column + right] += ink
        samples.append((picture + [1.0], digit))
    dice.shuffle(samples)
    return samples


def start_state(group):
    """Zeros, or the weights an earlier attempt left. Rank 0 reads; the others add zeros to its copy."""
    state = [0.0] * (1 + CLASSES * (PIXELS + 1))
    folder = os.environ.get("DANLU_RESUME_DIR")
    path = os.path.join(folder or "", CHECKPOINT)
    if group.rank == 0 and folder and os.path.exists(path):
        with open(path) as file:
            saved = json.load(file)
        state = [saved["epoch"], *saved["weights"]]
        print(f"resuming after epoch {saved['epoch']} from {path}", flush=True)
    state = group.sum(state)
    return int(state[0]), list(state[1:])


def chances(weights, picture):
    """Softmax over the classes; class k's weights lie from k * 65 on."""
    width = PIXELS + 1
    scores = [sum(map(mul, weights[k * width : (k + 1) * width], picture)) for k in range(CLASSES)]
    highest = max(scores)
    powers = [math.exp(score - highest) for score in scores]
    total = sum(powers)
    return [power / total for power in powers]


def loss_and_gradients(weights, samples):
    """Sums, not means: the caller divides by the global batch once all ranks have added theirs."""
    loss = 0.0
    rows = [[0.0] * (PIXELS + 1) for _ in range(CLASSES)]
    for picture, digit in samples:
        found = chances(weights, picture)
        loss -= math.log(max(found[digit], 1e-12))
        found[digit] -= 1.0
        for k, error in enumerate(found):
            rows[k] = [gradient + error * pixel for gradient, pixel in zip(rows[k], picture)]
    return loss, [gradient for row in rows for gradient in row]


def evaluate(weights, samples):
    right = 0
    for picture, digit in samples:
        found = chances(weights, picture)
        right += found.index(max(found)) == digit
    return right / len(samples)


def report(epoch, epochs, loss, accuracy, writer):
    writer.scalars(epoch + 1, loss=loss, accuracy=accuracy)
    print(f"epoch {epoch + 1:3d} of {epochs}: loss {loss:.6f}, accuracy {accuracy:.3f}")
    print(f"::danlu progress {(epoch + 1) / epochs:.3f}")
    print(f"::danlu metric loss={loss:.6f} accuracy={accuracy:.4f}", flush=True)


def save(weights, epoch):
    folder = os.environ.get("DANLU_CHECKPOINT_DIR")
    if not folder:
        return
    os.makedirs(folder, exist_ok=True)
    unfinished = os.path.join(folder, f".{CHECKPOINT}.tmp")
    with open(unfinished, "w") as file:
        json.dump({"epoch": epoch, "weights": list(weights)}, file)
    os.replace(unfinished, os.path.join(folder, CHECKPOINT))  # A kill at any moment leaves the old one or the new one.
    print(f"::danlu checkpoint step={epoch}", flush=True)


if __name__ == "__main__":
    main()
