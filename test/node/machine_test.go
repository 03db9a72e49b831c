package node

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The test's second process, which has namespaces of its own, finds in its environment where the packages are, and a
// directory to work in. It cannot remove that itself: containers have mounts there until its namespaces end.
const (
	inside     = "NODE_INSIDE"
	insideHome = "NODE_HOME"
)

// packages are what a node needs beside the kubelet, by Debian's names; of busybox images are made.
var packages = []string{"containerd", "runc", "containernetworking-plugins", "busybox-static"}

// machine unpacks what a node needs into a directory and returns it. It skips the test where that cannot be had.
// NODE_PACKAGES names a directory that has it already, or is to keep it.
func machine(t *testing.T) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("a node needs root")
	}
	for _, tool := range []string{"unshare", "ip", "mount", "apt-get", "dpkg"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("a node needs %s, and apt-get and dpkg bring the rest: %v", tool, err)
		}
	}
	dir := os.Getenv("NODE_PACKAGES")
	if dir == "" {
		dir = filepath.Join(binaries, "packages") // for all tests
	}
	unpack(t, dir, "usr/bin/containerd", packages)
	return dir
}

// unpack puts packages of the distribution into a directory, unless a file of them is there. It skips the test where
// they cannot be had.
func unpack(t *testing.T, dir, file string, packages []string) {
	t.Helper()
	if _, err := os.Stat(filepath.Join(dir, filepath.FromSlash(file))); err == nil {
		return
	}
	debs := t.TempDir()
	fetch := exec.CommandContext(t.Context(), "apt-get", append([]string{"download"}, packages...)...)
	fetch.Dir = debs
	if out, err := fetch.CombinedOutput(); err != nil {
		t.Skipf("the distribution's packages cannot be had: %v: %s", err, out)
	}
	files, err := filepath.Glob(filepath.Join(debs, "*.deb"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if out, err := exec.CommandContext(t.Context(), "dpkg", "-x", file, dir).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v: %s", file, err, out)
		}
	}
}

// onMachine returns where the packages of a node are, in a second process that has namespaces of its own for processes,
// mounts and the network. In the first process it runs the test there, and returns "". When that ends the kernel ends
// and unmounts all that it has left. Where the machine cannot do it the test is skipped. What is built, prepare builds
// before: in the namespaces there is no network.
func onMachine(t *testing.T, prepare ...func(t *testing.T)) string {
	t.Helper()
	if root := os.Getenv(inside); root != "" {
		return root
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	probe := exec.Command("unshare", "--net", "--mount", "--pid", "--fork", "--mount-proc", "true")
	if out, err := probe.CombinedOutput(); err != nil {
		t.Skipf("this machine gives no namespaces: %v: %s", err, out)
	}
	timeout := "25m"
	if os.Getenv(conformance) != "" {
		timeout = "0"
	}
	root := machine(t)
	for _, f := range prepare {
		f(t)
	}
	// The shell is the first process there, to which all fall whose parent has ended: it waits for them when they end.
	cmd := exec.CommandContext(t.Context(), "unshare", "--net", "--mount", "--pid", "--fork", "--kill-child",
		"--mount-proc", "sh", "-c", `"$@"; exit $?`, "sh", self, "-test.v", "-test.timeout="+timeout,
		"-test.run=^"+strings.ReplaceAll(t.Name(), "/", "$/^")+"$")
	group, before := makeGroup(t), containerGroups(t)
	cmd.Env = append(os.Environ(), inside+"="+root, insideHome+"="+t.TempDir(), insideGroup+"="+group,
		"NODE_BINARIES="+binaries)
	out, err := cmd.CombinedOutput()
	t.Logf("%s", out)
	removeNew(t, before)
	if group != "" {
		removeGroup(t, group)
	}
	switch {
	case err != nil:
		t.Error(err)
	case bytes.Contains(out, []byte("\n--- SKIP: ")):
		t.Skip("it was skipped there")
	}
	return ""
}

// sandbox prepares the namespaces: folders that programs write to wherever they run, and the node's address.
func sandbox(t *testing.T) {
	t.Helper()
	shell(t, "ip link set lo up; echo 1 > /proc/sys/net/ipv4/ip_forward; mkdir -p /var/lib /var/log /run")
	for _, dir := range []string{"/var/lib", "/var/log", "/run", "/opt"} {
		shell(t, "mount -t tmpfs tmpfs "+dir)
	}
	addAddress(t, nodeAddress)
}

// addAddress gives this machine one more address.
func addAddress(t *testing.T, address string) {
	t.Helper()
	shell(t, "ip address add "+address+"/32 dev lo")
}

// shell runs a line that prepares the namespaces.
func shell(t *testing.T, line string) {
	t.Helper()
	if out, err := exec.CommandContext(t.Context(), "sh", "-ec", line).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: %s", line, err, out)
	}
}

// ownFolder gives the namespaces a copy of a folder of this machine, to write to.
func ownFolder(t *testing.T, name string) {
	t.Helper()
	shell(t, fmt.Sprintf("cp -a %[1]s %[2]s%[1]s && mount --bind %[2]s%[1]s %[1]s", name, os.Getenv(insideHome)))
}
