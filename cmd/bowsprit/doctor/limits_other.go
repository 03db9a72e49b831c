//go:build !linux && !darwin

package doctor

// limits are not known here.
func (e *examination) limits() {}

func diskFree(string) (free int64, known bool) { return 0, false }
