// Package route finds the server that a call goes to, where that is not the server at the node's address.
// Both ways are a Topology of package node.
//
//   - sentinels.go: the master that sentinels name
//   - router.go: the member of a cluster that has the slot of a lock, also while the slot moves;
//     members.go: the members and their slots; refresh.go: the slot map; channel.go: the channels on which
//     members push
package route
