package embedded

import "golang.org/x/sys/unix"

// diskFree returns the number of bytes this user can still write to the file system of dir; ok is false if that is
// unknown.
func diskFree(dir string) (free int64, ok bool) {
	var s unix.Statfs_t
	if unix.Statfs(dir, &s) != nil {
		return 0, false
	}
	return int64(s.Bavail) * s.Bsize, true
}
