// Package sentinel asks the sentinels that watch a master and its replicas where the master
// is. Sentinels promote a replica when the master fails, so a store with sentinels has
// one node: it asks for the master's address each time it connects, and once a second
// while it is connected, since a master that was replaced may go on answering.
//
// It knows no locks and no connection to the master.
package sentinel
