// Package guardtest has no code of its own: its tests run the guards against real
// databases and servers, with holders that are processes and are really frozen.
package guardtest
