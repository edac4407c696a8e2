// Package cluster knows how a Redis Cluster divides keys among its members: slots, the slot
// map that a member reports, redirections, and under which key a cluster keeps a lock.
//
// It sends nothing but the question for the slot map. Which member a call goes to, and
// what happens to it while slots move, is the business of package route.
package cluster
