// Package observe follows what a store holds. An Observer looks at the store while somebody
// asks for it, at a bounded rate however many ask, and tells the differences between two looks
// as events: acquired, handed over, released, lost, broken.
//
// changes.go decides what the differences mean and does no I/O; look.go asks the store;
// observer.go says when; metrics.go writes what was counted for Prometheus.
package observe
