// Package sigaction does with signals what package os/signal cannot: it remembers
// which of them were ignored when the program started, and ends the program by one of them.
package sigaction
