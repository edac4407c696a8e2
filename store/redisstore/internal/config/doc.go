// Package config reads the URLs and the options of a store and checks them. The result
// names the servers, their topology and the login.
//
// It connects to nothing.
package config
