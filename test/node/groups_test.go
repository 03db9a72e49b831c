package node

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// insideGroup is an environment variable of the second process: the parent control group of pods, by its path in each
// hierarchy. It is empty if the machine provides none.
const insideGroup = "NODE_CGROUP"

// groupPrefix, and the pid of the test's first process, form the name of its node's control group.
const groupPrefix = "/bowsprit-node-"

// hierarchies returns the mounts of this machine's control groups: one folder with version 2, one for each controller
// with version 1.
func hierarchies(t *testing.T) []string {
	t.Helper()
	const root = "/sys/fs/cgroup"
	if _, err := os.Stat(filepath.Join(root, "cgroup.controllers")); err == nil {
		return []string{root}
	}
	files, err := filepath.Glob(root + "/*/cgroup.procs")
	if err != nil {
		t.Fatal(err)
	}
	for i, file := range files {
		files[i] = filepath.Dir(file)
	}
	return files
}

// makeGroup creates the control group of a node, and returns its path. Each node has its own, because a kubelet kills
// processes in the groups of unknown pods.
func makeGroup(t *testing.T) string {
	t.Helper()
	group := groupPrefix + strconv.Itoa(os.Getpid())
	all := hierarchies(t)
	for _, root := range all {
		removeOrphans(t, root)
		err := handDown(root)
		if err == nil {
			err = os.Mkdir(root+group, 0o755)
		}
		if err != nil && !errors.Is(err, fs.ErrExist) {
			t.Logf("pods have no control groups: %v", err)
			removeGroup(t, group)
			return ""
		}
	}
	if len(all) == 0 {
		return ""
	}
	return group
}

// removeOrphans removes the control groups of earlier tests that were killed.
func removeOrphans(t *testing.T, root string) {
	t.Helper()
	groups, err := filepath.Glob(root + groupPrefix + "*")
	if err != nil {
		t.Fatal(err)
	}
	for _, group := range groups {
		if _, err := os.Stat("/proc/" + strings.TrimPrefix(group, root+groupPrefix)); !errors.Is(err, fs.ErrNotExist) {
			continue
		}
		for _, dir := range below(t, group) {
			_ = os.Remove(dir) // fails if processes remain, such as processes of a test in another container
		}
	}
}

// handDown enables the controllers of a group of version 2 in its children, as a kubelet does for its own.
func handDown(group string) error {
	controllers, err := os.ReadFile(filepath.Join(group, "cgroup.controllers"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil // of version 1
	}
	if err != nil {
		return err
	}
	text := ""
	for name := range strings.FieldsSeq(string(controllers)) {
		text += "+" + name + " "
	}
	return os.WriteFile(filepath.Join(group, "cgroup.subtree_control"), []byte(text), 0)
}

// removeGroup removes a control group and its descendants. The kernel has ended all their processes.
func removeGroup(t *testing.T, group string) {
	t.Helper()
	for _, root := range hierarchies(t) {
		removeAll(t, below(t, root+group))
	}
}

// below returns a control group and its descendants, children first.
func below(t *testing.T, group string) (all []string) {
	t.Helper()
	err := filepath.WalkDir(group, func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err == nil && entry.IsDir() {
			all = append(all, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Reverse(all)
	return all
}

// containerGroups returns the control groups of containers outside a pod's group, children first.
func containerGroups(t *testing.T) (all []string) {
	t.Helper()
	for _, root := range hierarchies(t) {
		all = append(all, below(t, root+"/k8s.io")...)
	}
	return all
}

// removeNew removes control groups of ended containers, except groups that existed before.
func removeNew(t *testing.T, before []string) {
	t.Helper()
	removeAll(t, slices.DeleteFunc(containerGroups(t), func(group string) bool {
		return slices.Contains(before, group)
	}))
}

// removeAll removes control groups when their last process has ended.
func removeAll(t *testing.T, groups []string) {
	t.Helper()
	for _, group := range groups {
		await(t, func(context.Context) string {
			if err := os.Remove(group); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return fmt.Sprintf("a control group is left: %v", err)
			}
			return ""
		})
	}
}
