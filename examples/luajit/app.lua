-- SPDX-License-Identifier: MIT
-- Runs loops that LuaJIT compiles: luajit app.lua SECONDS [DIRECTORY], in this directory.
local stop = require("perfmap")(arg[2])

local function sieve(n)
  local composite, count = {}, 0
  for i = 2, n do
    if not composite[i] then
      count = count + 1
      for j = i * i, n, i do composite[j] = true end
    end
  end
  return count
end

local function fib(n)
  if n < 2 then return n end
  return fib(n - 1) + fib(n - 2)
end

local function mix(n)
  local sum = 0
  for i = 1, n do
    if i % 3 == 0 then sum = sum + i elseif i % 5 == 0 then sum = sum - i else sum = sum * 0.5 end
  end
  return sum
end

local start = os.clock()
while os.clock() - start < tonumber(arg[1]) do
  sieve(20000)
  fib(20)
  mix(100000)
end
stop()
