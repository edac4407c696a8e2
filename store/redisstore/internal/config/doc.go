// Package config reads the URLs and the options of a store and checks them. What it returns
// says which servers there are, how they belong together, and how to log in.
//
// It connects to nothing.
package config
