// Package script is what a store and the Lua scripts on a server say to each other. It loads
// the scripts, encodes questions about locks as calls of them, and reads their answers,
// their pushes, and the errors that they end with. It names all keys and channels.
//
// It knows no connections: it turns values into bytes and replies into values.
package script
