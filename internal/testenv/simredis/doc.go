// Package simredis is a Redis server for simulations: a function of the commands it
// is sent and of a clock that the simulation sets. It starts no goroutine, opens no
// socket and uses no random numbers.
//
// It runs the Lua scripts that it is sent, so that a simulation checks the real scripts
// instead of a model of them. It knows the commands that the scripts and the connections of
// store/redisstore need; any other is an error. Its own test compares it with a real server,
// command by command.
//
// A simulation can do to it what happens to real servers. It can be restarted with all
// its data, with a part or with none; be replaced by a copy; become a replica and a
// master again; run out of memory; and have a wall clock that steps.
package simredis
