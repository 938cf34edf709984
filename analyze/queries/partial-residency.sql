-- question: How long do slabs sit on partial lists?
-- columns: run, variant, cache; state: partial (node list) or cpu_partial; stays: times a slab was there and left again; mean_us, longest_us: length of a stay, microseconds of tape time (virtual time in simulated runs); left_to: where most of them went next; still: stays that had not ended
-- param run: one run (default: all that recorded transitions)
-- param cache: name of one cache (default: all)
-- needs: transition
-- example: slabtape query T partial-residency --param run=1
WITH step(run, cache, slab, state, ts, next_ts, next_state) AS (
       SELECT run, cache, slab, to_state, at, lead(at) OVER slabs, lead(to_state) OVER slabs
         FROM (SELECT run, cache, slab, to_state, rowid AS id, iif(vts > 0, vts, ts) AS at
                 FROM transition
                WHERE :run IS NULL OR run = :run)
       WINDOW slabs AS (PARTITION BY run, slab ORDER BY id)),
     stay(run, cache, state, ns, next_state) AS (
       SELECT run, cache, state, next_ts - ts, next_state FROM step
        WHERE state IN ('partial', 'cpu_partial')),
     went(run, cache, state, next_state, place) AS (
       SELECT run, cache, state, next_state,
              row_number() OVER (PARTITION BY run, cache, state ORDER BY count(*) DESC, next_state)
         FROM stay WHERE ns IS NOT NULL GROUP BY run, cache, state, next_state)
SELECT s.run, r.variant, c.name AS cache, s.state, count(s.ns) AS stays,
       round(avg(s.ns) / 1e3, 1) AS mean_us, round(max(s.ns) / 1e3, 1) AS longest_us,
       (SELECT w.next_state FROM went w WHERE w.run = s.run AND w.cache = s.cache
           AND w.state = s.state AND w.place = 1) AS left_to,
       count(*) - count(s.ns) AS still
  FROM stay s
  JOIN run r USING(run)
  LEFT JOIN cache c ON c.cache = s.cache
 WHERE :cache IS NULL OR c.name = :cache
 GROUP BY s.run, s.cache, s.state
 ORDER BY s.run, stays DESC, cache, s.state;
