# layer backend: tensors and the operations of a step
