// Package s3storetest tests store/s3store on a server that speaks the protocol of S3
// (versitygw), which it runs as a process of its own. It is a module of its own, so that
// programs with the store do not fetch the server.
package s3storetest
