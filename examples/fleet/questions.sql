-- SPDX-License-Identifier: MIT
-- Questions to all stacks, for DuckDB. Run it in the directory with the files *.jsonl.zst.

-- What difference compares: two builds of a service.
SET VARIABLE service = 'web';
SET VARIABLE before = '7';
SET VARIABLE after = '8';

-- A line is a distinct stack of a recording, with its number of samples. The leaf is frames[1].
CREATE VIEW stacks AS
SELECT count, labels['host'] AS host, labels['service'] AS service, labels['build'] AS build,
       labels['time']::TIMESTAMP AS time, frames
FROM read_ndjson('*.jsonl.zst', columns = {
  count: 'UBIGINT', labels: 'MAP(VARCHAR, VARCHAR)',
  frames: 'STRUCT(name VARCHAR, module VARCHAR, kind VARCHAR)[]'});

-- The samples of each function's own code.
CREATE VIEW own AS
SELECT *, coalesce(frames[1].name, '[' || parse_filename(frames[1].module) || ']') AS function
FROM stacks;

-- hottest: the function with most samples of each service and build
SELECT service, build, function, sum(count)::BIGINT AS samples
FROM own GROUP BY service, build, function
QUALIFY row_number() OVER (PARTITION BY service, build ORDER BY samples DESC, function) = 1
ORDER BY service, build;

-- difference: the functions whose shares of the samples differ most between two builds of a service
WITH shares AS (
  SELECT build, function, sum(count) / sum(sum(count)) OVER (PARTITION BY build) AS share
  FROM own WHERE service = getvariable('service') GROUP BY build, function)
SELECT function, round(100 * coalesce(sum(share) FILTER (build = getvariable('before')), 0), 1) AS before,
       round(100 * coalesce(sum(share) FILTER (build = getvariable('after')), 0), 1) AS after
FROM shares GROUP BY function ORDER BY abs(after - before) DESC, function LIMIT 5;

-- unnamed: the share of frames without a name by host, the worst first
SELECT host,
       round(100 * sum(count * len(list_filter(frames, lambda frame: frame.name IS NULL)))
             / sum(count * len(frames)), 1) AS percent
FROM stacks GROUP BY host ORDER BY percent DESC, host LIMIT 5;
