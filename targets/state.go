package targets

import "errors"

// ErrNoState says that a power driver cannot ask for the state without switching.
var ErrNoState = errors.New("its state cannot be asked for")
