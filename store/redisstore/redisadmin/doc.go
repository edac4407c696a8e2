// Package redisadmin is for operators of the servers of package redisstore. Examine
// reports on servers, Bootstrap declares new ones empty, Replace finishes the replacement
// of servers by others, and ACL has the rights that a user needs. A program that only
// locks does not need this package.
//
// Examine and Bootstrap change no lock of a client. Replace makes servers refuse clients
// that know the old membership only, and so ends their leases.
package redisadmin
