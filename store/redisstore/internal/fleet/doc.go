// Package fleet is the servers of a store together: it asks them all, and has them agree about what no
// server knows alone.
//
//   - fleet.go: Fleet, which asks all nodes, and hears their news
//   - joining.go: when servers that belong to nobody become ours
//   - omitted.go: servers that missed the replacement of their membership
//   - quarantine.go: how long a server has to grant nothing that may have forgotten leases
//
// Locks are the business of packages quorum and redisstore.
package fleet
