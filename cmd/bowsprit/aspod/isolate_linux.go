package aspod

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// isolated returns how to start a process in a mount namespace of its own. A user other than root needs a user
// namespace for that, in which the process keeps its user and has the capability to mount.
func isolated(asRoot bool) *syscall.SysProcAttr {
	attributes := &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	if !asRoot {
		uid, gid := os.Getuid(), os.Getgid()
		attributes.Cloneflags |= syscall.CLONE_NEWUSER
		attributes.UidMappings = []syscall.SysProcIDMap{{ContainerID: uid, HostID: uid, Size: 1}}
		attributes.GidMappings = []syscall.SysProcIDMap{{ContainerID: gid, HostID: gid, Size: 1}}
		attributes.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_DAC_OVERRIDE}
	}
	return attributes
}

// dependent returns how to start the program: it gets a process group, so that a signal reaches it once, and ends with
// this process, even after SIGKILL. The caller starts it in a locked thread.
func dependent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// follower returns how to start a process that stays in this process group and ends with this process, even after
// SIGKILL. The caller starts it in a locked thread.
func follower() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }

// dropRights removes the capability to mount from the processes that the calling thread starts. The thread is to be
// locked.
func dropRights() error {
	return unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
}

// lockThread keeps the calling goroutine in one thread: Linux ends dependent processes with the thread that started
// them.
func lockThread() { runtime.LockOSThread() }

// enter prepares the mount namespace of this process: later mounts are invisible outside of it.
func enter() (root, error) {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return root{}, fmt.Errorf("make mounts private: %w", err)
	}
	unix.CloseOnExec(reasonFile)
	made := &mounts{memory: map[string]bool{}}
	if err := made.prepare(accountDir, false); err != nil {
		return root{}, err
	}
	return root{prepare: made.prepare}, nil
}

// mounts makes directories of a pod in a mount namespace. Each is a file system in memory, so its files vanish with the
// last process of the namespace.
type mounts struct {
	memory map[string]bool // the directories that are, or are in, a file system of this namespace
}

// memorySize bounds the files of a directory.
const memorySize = "size=64m"

// prepare makes the directory at a path, or the directory of the file at the path.
func (m *mounts) prepare(path string, file bool) error {
	dir, err := resolve(path)
	if err != nil {
		return err
	}
	if file {
		if info, err := os.Lstat(dir); err == nil && info.IsDir() {
			return fmt.Errorf("there is a directory: choose another mountPath")
		}
		return m.own(filepath.Dir(dir))
	}
	if m.memory[dir] {
		return nil
	}
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		if err := m.own(filepath.Dir(dir)); err != nil {
			return err
		}
		if err := os.Mkdir(dir, 0o700); err != nil {
			return err
		}
	}
	if err := unix.Mount("tmpfs", dir, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=0700,"+memorySize); err != nil {
		return fmt.Errorf("mount a file system in memory at %s: %w", dir, err)
	}
	m.memory[dir] = true
	return nil
}

// resolve returns a path with the links of its existing part replaced: /run/secrets for /var/run/secrets.
func resolve(path string) (string, error) {
	rest := ""
	for dir := path; ; dir = filepath.Dir(dir) {
		real, err := filepath.EvalSymlinks(dir)
		if err == nil {
			return filepath.Join(real, rest), nil
		}
		if !errors.Is(err, fs.ErrNotExist) || dir == "/" {
			return "", err
		}
		rest = filepath.Join(filepath.Base(dir), rest)
	}
}

// own makes dir a directory in memory to which entries can be added. If it exists outside of the namespace, its entries
// remain visible.
func (m *mounts) own(dir string) error {
	if m.memory[dir] {
		return nil
	}
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		if err := m.own(filepath.Dir(dir)); err != nil {
			return err
		}
		m.memory[dir] = true
		return os.Mkdir(dir, 0o755)
	}
	if dir == "/" {
		return errors.New("the root directory of this machine cannot get entries: choose a mountPath below one of them")
	}
	if err := m.imitate(dir); err != nil {
		return fmt.Errorf("imitate %s: %w", dir, err)
	}
	m.memory[dir] = true
	return nil
}

// imitate covers dir with a file system in memory that has the entries of dir.
func (m *mounts) imitate(dir string) error {
	old, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer old.Close()
	info, err := old.Stat()
	if err != nil {
		return err
	}
	entries, err := old.ReadDir(-1)
	if err != nil {
		return err
	}
	mode := fmt.Sprintf("mode=%o,%s", info.Sys().(*syscall.Stat_t).Mode&0o7777, memorySize)
	if err := unix.Mount("tmpfs", dir, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, mode); err != nil {
		return err
	}
	behind := fmt.Sprintf("/proc/self/fd/%d", old.Fd()) // the covered directory
	for _, e := range entries {
		if err := bind(filepath.Join(behind, e.Name()), filepath.Join(dir, e.Name()), e); err != nil {
			return fmt.Errorf("%s: %w", e.Name(), err)
		}
	}
	return nil
}

// bind shows an entry of another directory at a path. Entries that have gone meanwhile are left out.
func bind(from, to string, e os.DirEntry) error {
	switch {
	case e.Type()&fs.ModeSymlink != 0:
		target, err := os.Readlink(from)
		if err != nil {
			return gone(err)
		}
		return os.Symlink(target, to)
	case e.IsDir():
		if err := os.Mkdir(to, 0o755); err != nil {
			return err
		}
	default:
		if err := os.WriteFile(to, nil, 0o600); err != nil {
			return err
		}
	}
	if err := unix.Mount(from, to, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return errors.Join(gone(err), os.Remove(to))
	}
	return nil
}

// gone returns err, or nil if it means that a file does not exist any more.
func gone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// inMemory reports whether dir is in a file system in memory.
func inMemory(dir string) bool {
	var s unix.Statfs_t
	return unix.Statfs(dir, &s) == nil && s.Type == unix.TMPFS_MAGIC
}

// memoryDir is the customary file system in memory.
const memoryDir = "/dev/shm"
