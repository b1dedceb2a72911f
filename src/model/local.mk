# layer model: files, tokenizer, templates, forward pass, sampler
