// Package managertest has no code of its own: its tests run managers of controller-runtime
// that lead by a lock of package clientgo.
package managertest
