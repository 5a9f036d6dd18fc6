def f(n):
    for i in range(n):
	n += i  # [31m
    return n
