// Package sim runs the production client against a simulated world, in virtual
// time, and judges what it sees.
package sim
