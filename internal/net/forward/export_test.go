package forward

// Unreached returns an error of a connection that could not be opened.
func Unreached(err error) error { return &UnreachedError{err} }
