//go:build !linux && !darwin

package doctor

// limits checks nothing on this system.
func (e *examination) limits() {}

func diskFree(string) (free int64, known bool) { return 0, false }
