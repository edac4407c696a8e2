// Package redisadmin is what an operator of the servers of package redisstore needs, and a
// program that locks does not: Examine reports on servers, Bootstrap declares new ones
// empty, Replace finishes the replacement of servers by others, and ACL has the rights
// that a user needs.
//
// Examine speaks to the servers over connections of its own. Bootstrap and Replace use
// the nodes of a store. No function of this package acquires or ends a lock.
package redisadmin
