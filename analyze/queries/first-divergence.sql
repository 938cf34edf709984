-- question: Where do two runs first do something different to a slab?
-- columns: step: number of the transition, from 1; run, variant; seq, ts, cpu, op: the event that caused it; cache; slab; from_state, to_state, inuse: what it did; one row for each run (one alone: the other run has no such step), none when both did the same
-- param a: the first run (default: the last but one that recorded transitions)
-- param b: the second run (default: the last)
-- needs: transition
-- example: slabtape query T first-divergence --param a=1 --param b=2
WITH recorded(run, place) AS (
       SELECT run, row_number() OVER (ORDER BY run DESC)
         FROM (SELECT DISTINCT run FROM run_chunk WHERE kind = 'transition')),
     one AS MATERIALIZED (
       SELECT row_number() OVER (ORDER BY rowid) AS n, * FROM transition
        WHERE run = coalesce(:a, (SELECT run FROM recorded WHERE place = 2))),
     two AS MATERIALIZED (
       SELECT row_number() OVER (ORDER BY rowid) AS n, * FROM transition
        WHERE run = coalesce(:b, (SELECT run FROM recorded WHERE place = 1))),
     parted(n) AS MATERIALIZED (
       SELECT min(n) FROM (
         SELECT one.n FROM one LEFT JOIN two USING(n)
          WHERE one.seq IS NOT two.seq OR one.cpu <> two.cpu OR one.cache <> two.cache
             OR one.slab <> two.slab OR one.from_state <> two.from_state
             OR one.to_state <> two.to_state OR one.inuse <> two.inuse
         UNION ALL
         SELECT max(n) + 1 FROM one WHERE (SELECT max(n) FROM two) > (SELECT max(n) FROM one)))
SELECT t.n AS step, t.run, r.variant, t.seq, t.ts, t.cpu, t.op, c.name AS cache, t.slab, t.from_state,
       t.to_state, t.inuse
  FROM (SELECT 1 AS side, * FROM one UNION ALL SELECT 2, * FROM two) t
  JOIN run r ON r.run = t.run
  LEFT JOIN cache c ON c.cache = t.cache
 WHERE t.n = (SELECT n FROM parted)
 ORDER BY t.side;
