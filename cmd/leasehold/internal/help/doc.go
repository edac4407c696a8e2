// Package help is what the command says about itself on a terminal: an overview of all commands, a
// short help for each, topics, and everything there is to say, which is also in the manual pages.
package help
