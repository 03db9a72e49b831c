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

// insideGroup is in the environment of the second process the control group below which the kubelet has those of pods,
// by its path in each hierarchy; empty where the machine has none to give.
const insideGroup = "NODE_CGROUP"

// groupPrefix, and the number of the test's first process, is the control group of its node.
const groupPrefix = "/bowsprit-node-"

// hierarchies returns where the control groups of this machine are: one folder with version 2, one for each controller
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

// makeGroup makes the control group of a node, and returns its path. Each node has its own: a kubelet ends what runs in
// the group of a pod that it does not know.
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

// removeOrphans removes the control groups of earlier tests that were killed before they could.
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
			_ = os.Remove(dir) // fails where processes are left, such as those of a test in another container
		}
	}
}

// handDown has the groups in a group of version 2 know the controllers that it knows, as a kubelet does for its own.
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

// removeGroup removes a control group and those in it. The kernel has ended all processes that were there.
func removeGroup(t *testing.T, group string) {
	t.Helper()
	for _, root := range hierarchies(t) {
		removeAll(t, below(t, root+group))
	}
}

// below returns a control group and all in it, each before the one that it is in.
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

// containerGroups returns the control groups of containers that are not in one of a pod, each before the one that it is
// in.
func containerGroups(t *testing.T) (all []string) {
	t.Helper()
	for _, root := range hierarchies(t) {
		all = append(all, below(t, root+"/k8s.io")...)
	}
	return all
}

// removeNew removes control groups of containers that have ended, but for those that were there before.
func removeNew(t *testing.T, before []string) {
	t.Helper()
	removeAll(t, slices.DeleteFunc(containerGroups(t), func(group string) bool {
		return slices.Contains(before, group)
	}))
}

// removeAll removes control groups, when the last process in them is gone.
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
