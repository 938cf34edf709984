-- question: Do CPUs that refill from other nodes' lists contend for them?
-- columns: run, variant, cache; refills; remote: share of them served by another node, 0..1; waits: share of the refills' lock acquisitions that waited, 0..1; wait_ns: what they waited in all; wait_share: part of all waiting of the cache, 0..1
-- data: a simulated or parallel run with --record refills,locks
-- loss: 0.01
-- param remote=0.1: one refill in ten walks other nodes' lists
-- param waits=0.1: and one acquisition in ten finds the lock taken
-- param wait_share=0.25: and that is a good part of what the cache waits for (2026: four in nine samples stood in the search of other nodes)
-- param least=100: refills; fewer say nothing about a share
-- text contention: {cache} contends for other nodes' lists on {variant}: {remote%} of {refills} refills came from another node, {waits%} of the refills' acquisitions waited, {wait_share%} of all waiting of the cache
WITH f AS (
       SELECT run, cache, sum(refills) AS refills,
              coalesce(sum(refills) FILTER (WHERE source = 'remote_node'), 0) AS remote
         FROM refill_agg
        WHERE :run IS NULL OR run = :run
        GROUP BY run, cache),
     l AS (
       SELECT run, cache,
              total(acquisitions) FILTER (WHERE path IN ('refill', 'alloc_slowpath')) AS acquisitions,
              total(contended) FILTER (WHERE path IN ('refill', 'alloc_slowpath')) AS contended,
              coalesce(sum(wait_ns) FILTER (WHERE path IN ('refill', 'alloc_slowpath')), 0) AS wait_ns,
              sum(wait_ns) AS all_ns
         FROM lock
        WHERE lock IN ('list_lock', 'barn_lock') AND (:run IS NULL OR run = :run)
        GROUP BY run, cache)
SELECT f.run, r.variant, c.name AS cache, f.refills, round(1.0 * f.remote / f.refills, 4) AS remote,
       round(l.contended / nullif(l.acquisitions, 0), 4) AS waits, l.wait_ns,
       round(1.0 * l.wait_ns / nullif(l.all_ns, 0), 4) AS wait_share,
       CASE WHEN f.remote >= :remote * f.refills AND l.contended >= :waits * l.acquisitions
                 AND l.wait_ns > 0 AND l.wait_ns >= :wait_share * l.all_ns THEN 'contention' END AS finding
  FROM f
  JOIN l ON l.run = f.run AND l.cache = f.cache
  JOIN run r ON r.run = f.run
  JOIN cache c ON c.cache = f.cache
 WHERE f.refills >= :least AND r.mode != 'ordered' AND (:cache IS NULL OR c.name = :cache)
 ORDER BY f.run, remote DESC, c.name;
