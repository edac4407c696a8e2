package redisstore

import (
	"errors"
)

var (
	errUnserved     = errors.New("no server of the cluster serves the slot of this lock at present")
	errRetired      = errors.New("the server is not a master of the cluster any more")
	errChannelMoved = errors.New("the slot of the channel has moved to another server")
	errNoChannel    = errors.New("the server was given slots after the connection was made")
)
