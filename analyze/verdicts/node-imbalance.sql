-- question: Does one node keep feeding objects to the others?
-- columns: cache; node: the one that gives most; given: objects allocated on its CPUs minus objects freed there, of those that were freed; freed: freed objects in all; share: given / freed, 0..1; crossed: share of the frees on another node than that of the allocating CPU, 0..1
-- data: events on two nodes or more, 1000 freed objects of a cache
-- loss: 0.01
-- param share=0.2: one object in five moves one way: that node's partial lists drain while slabs pile up elsewhere; balanced exchange, however large, gives 0
-- param least=1000: freed objects; fewer say nothing about a share
-- text imbalance: {cache} moves objects one way: node {node} allocated {given} more of {freed} freed objects than were freed there ({share%}; {crossed%} were freed on another node)
WITH o AS (
       SELECT cache, alloc_node, free_node, sum(objects) AS objects FROM object_agg
        WHERE freed = 1 AND alloc_node IS NOT NULL
        GROUP BY cache, alloc_node, free_node),
     flow(cache, node, net) AS (
       SELECT cache, node, sum(n) FROM (
         SELECT cache, alloc_node AS node, objects AS n FROM o
         UNION ALL SELECT cache, free_node, -objects FROM o)
        GROUP BY cache, node),
     most(cache, node, given) AS (
       SELECT cache, node, max(net) FROM flow GROUP BY cache),
     whole(cache, freed, crossed) AS (
       SELECT cache, sum(objects), sum(objects * (alloc_node != free_node)) FROM o GROUP BY cache)
SELECT c.name AS cache, m.node, m.given, w.freed, round(1.0 * m.given / w.freed, 4) AS share,
       round(1.0 * w.crossed / w.freed, 4) AS crossed,
       CASE WHEN m.given >= :share * w.freed THEN 'imbalance' END AS finding
  FROM most m
  JOIN whole w USING(cache)
  JOIN cache c USING(cache)
 WHERE w.freed >= :least AND (SELECT count(DISTINCT node) FROM cpu) > 1
   AND (:cache IS NULL OR c.name = :cache)
 ORDER BY share DESC, c.name;
