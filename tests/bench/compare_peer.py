# SPDX-License-Identifier: Apache-2.0
"""The other side of compare.py: updates of transformers' Llama in PyTorch on the CPU, timed.

    compare_peer.py TASK UPDATES ROWS.jsonl LAYERS HIDDEN HEADS MLP VOCAB THREADS [--bf16]

TASK is sft or dpo; ROWS are compare.py's, of one length and as many as an update has. AdamW is the
fused one without weight decay, as in twinstep's row, gradients are clipped at 1, attention is scaled_dot_product_attention; DPO takes chosen
and rejected through one forward, logits of response tokens only, and has the reference's log-probs
from before the first update. --bf16 is autocast over f32 parameters and slots. The first two updates
do not count. Prints parameters, tokens, labels, the median seconds of an update, and the most memory
of the process in GiB, with tabs between; on stderr, which kernels MKL takes."""
import json
import resource
import statistics
import sys
import time

import torch
import torch.nn.functional as F
from transformers import LlamaConfig, LlamaForCausalLM

UNTIMED = 2


def llama(layers, hidden, heads, mlp, vocab, length):
    torch.manual_seed(17)
    return LlamaForCausalLM(LlamaConfig(
        num_hidden_layers=layers, hidden_size=hidden, num_attention_heads=heads,
        num_key_value_heads=heads, intermediate_size=mlp, vocab_size=vocab,
        max_position_embeddings=length, tie_word_embeddings=True, attn_implementation="sdpa",
        use_cache=False))


def sft_loss(model, rows):
    ids = torch.tensor([row["input_ids"] for row in rows])

    def loss():
        logits = model(input_ids=ids).logits[:, :-1]
        return F.cross_entropy(logits.float().flatten(0, 1), ids[:, 1:].flatten())
    return loss, ids.numel(), ids[:, 1:].numel()


def dpo_loss(model, rows, autocast):
    prompt = len(rows[0]["prompt_ids"])
    ids = torch.tensor([row["prompt_ids"] + row[side] for side in ("chosen_ids", "rejected_ids")
                        for row in rows])
    target = ids[:, prompt:]

    def log_probs():
        logits = model(input_ids=ids, logits_to_keep=target.shape[1] + 1).logits[:, :-1]
        nats = F.cross_entropy(logits.float().flatten(0, 1), target.flatten(), reduction="none")
        return -nats.view(target.shape).sum(-1)
    with torch.no_grad(), autocast():
        reference = log_probs()

    def loss():
        gain = log_probs() - reference
        return -F.logsigmoid(0.1 * (gain[:len(rows)] - gain[len(rows):])).mean()
    return loss, ids.numel(), target.numel()


def main(task, updates, data, *words):
    layers, hidden, heads, mlp, vocab, threads = (int(word) for word in words[:6])
    torch.set_num_threads(threads)
    rows = [json.loads(line) for line in open(data)]
    length = len(rows[0]["input_ids"] if task == "sft"
                 else rows[0]["prompt_ids"] + rows[0]["chosen_ids"])
    model = llama(layers, hidden, heads, mlp, vocab, length)
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-7, weight_decay=0.0, fused=True)

    def autocast():
        return torch.autocast("cpu", torch.bfloat16, enabled="--bf16" in words)
    loss, tokens, labels = (sft_loss(model, rows) if task == "sft"
                            else dpo_loss(model, rows, autocast))
    seconds = []
    for _ in range(UNTIMED + int(updates)):
        start = time.perf_counter()
        with autocast():
            value = loss()
        value.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        seconds.append(time.perf_counter() - start)
    parameters = sum(p.numel() for p in model.parameters())
    print(parameters, tokens, labels, f"{statistics.median(seconds[UNTIMED:]):.6g}",
          f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.4g}", sep="\t")


if __name__ == "__main__":
    main(*sys.argv[1:])
