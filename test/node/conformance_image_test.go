package node

import (
	"bytes"
	"maps"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// toolPackages are the packages in the image agnhost, beside its program and busybox. The shell of all images is bash,
// outside of agnhost bash-static: Debian's busybox runs its built-in nc instead of an installed one, and drops
// environment variables with names that are invalid in a shell.
var toolPackages = []string{"bash", "bash-static", "libc-bin", "curl", "netcat-openbsd", "bind9-dnsutils", "iproute2"}

// toolsFolder is their folder, beside the packages of a node.
func toolsFolder(root string) string { return filepath.Join(root, "tools") }

// unpackTools is a step of preparation (see onMachine).
func unpackTools(t *testing.T) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "apt-cache", append([]string{
		"depends", "--recurse", "--no-recommends", "--no-suggests", "--no-conflicts", "--no-breaks", "--no-replaces",
		"--no-enhances",
	}, toolPackages...)...).Output()
	if err != nil {
		t.Skipf("what the packages of the distribution depend on cannot be had: %v", err)
	}
	var all []string
	for line := range bytes.Lines(out) {
		// Indented lines name the kind of a dependency; "<" marks a virtual package.
		if name := string(bytes.TrimSpace(line)); name != "" && !strings.ContainsAny(name, " <:") {
			all = append(all, name)
		}
	}
	unpack(t, toolsFolder(machine(t)), "usr/bin/getent", all)
}

// loadConformanceImages loads the images of the specs into containerd, under the names in the specs. They are built
// from Kubernetes' sources and the distribution's packages: agnhost has Debian's glibc and tools instead of Alpine's,
// nginx is busybox' httpd.
func (n *realNode) loadConformanceImages(t *testing.T) {
	t.Helper()
	upstream := n.upstreamImages(t)
	every := slices.DeleteFunc(strings.Fields(n.sh(t, "busybox --list")), func(name string) bool {
		return name == "sh" || name == "nc"
	})
	n.sh(t, strings.NewReplacer("TOOLS", toolsFolder(n.root), "IMAGES", upstream).Replace(agnhostFolder))
	shell := filepath.Join(toolsFolder(n.root), "bin", "bash-static")
	passwords := map[string]string{
		"bin/sh":     shell,
		"etc/passwd": filepath.Join(n.home, "agnhost", "etc", "passwd"),
		"etc/group":  filepath.Join(n.home, "agnhost", "etc", "group"),
	}
	agnhost := map[string]string{
		"agnhost": filepath.Join(binaries, "agnhost"), "agnhost-2": filepath.Join(binaries, "agnhost"),
	}
	ofAgnhost := func(command string, files map[string]string) contents {
		maps.Copy(files, agnhost)
		return contents{
			entrypoint: []string{"/agnhost"}, command: []string{command}, files: files, applets: every,
			folder: filepath.Join(n.home, "agnhost"),
		}
	}
	page := func(name string) map[string]string {
		return map[string]string{
			"data.json":   filepath.Join(upstream, name, "html", "data.json"),
			name + ".jpg": filepath.Join(upstream, name, "html", name+".jpg"),
		}
	}
	httpd := []string{"httpd", "-f", "-p", "80", "-h", "/tmp"}
	images := map[string]contents{
		"pause":             {command: pause},
		"busybox":           {command: []string{"sh"}, files: passwords, applets: every},
		"nonroot":           {command: []string{"sh"}, files: passwords, applets: every, user: "1234"},
		"nginx":             {command: httpd, files: passwords, applets: every},
		"agnhost":           ofAgnhost("pause", map[string]string{}),
		"glibc-dns-testing": ofAgnhost("pause", map[string]string{}),
		"kitten":            ofAgnhost("test-webserver", page("kitten")),
		"nautilus":          ofAgnhost("test-webserver", page("nautilus")),
		"nonewprivs": {
			command: []string{"nnp"}, applets: every, setuid: "usr/local/bin/nnp",
			files: map[string]string{"bin/sh": shell, "usr/local/bin/nnp": filepath.Join(binaries, "nnp")},
		},
		"etcd": {
			command: []string{"etcd"},
			files:   map[string]string{"usr/local/bin/etcd": filepath.Join(binaries, "etcd")},
		},
		"sample-apiserver": {
			entrypoint: []string{"/sample-apiserver"},
			files:      map[string]string{"sample-apiserver": filepath.Join(binaries, "sample-apiserver")},
		},
	}
	n.load(t, images["pause"], "registry.k8s.io/pause:3.10") // the sandboxes'
	for _, name := range strings.Fields(n.sh(t, "e2e.test --list-images 2> images.log")) {
		base, _, _ := strings.Cut(path.Base(name), ":")
		if has, ok := images[base]; ok && strings.HasPrefix(name, "registry.k8s.io/") {
			n.load(t, has, name)
		}
	}
}

// upstreamImages returns the folder with the sources of Kubernetes' images.
func (n *realNode) upstreamImages(t *testing.T) string {
	t.Helper()
	list := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "k8s.io/kubernetes")
	list.Dir = "programs"
	module, err := list.Output()
	if err != nil {
		t.Fatalf("where Kubernetes' images are: %v", err)
	}
	return filepath.Join(strings.TrimSpace(string(module)), "test", "images")
}

// agnhostFolder creates the root of the image agnhost, without its program.
const agnhostFolder = `
cp -a TOOLS agnhost
rm -rf agnhost/usr/share agnhost/var/lib agnhost/var/cache
ln -s nc.openbsd agnhost/bin/nc
ln -s bash agnhost/bin/sh
mkdir -p agnhost/etc agnhost/uploads
echo "hosts: files dns" > agnhost/etc/nsswitch.conf
cp IMAGES/agnhost/porter/localhost.crt IMAGES/agnhost/porter/localhost.key agnhost/
chmod 644 agnhost/localhost.*
cat > agnhost/etc/passwd <<END
root:x:0:0:root:/root:/bin/sh
user-defined-in-image:x:1000:1000::/home/user-defined-in-image:/bin/sh
END
cat > agnhost/etc/group <<END
root:x:0:
user-defined-in-image:x:1000:
group-defined-in-image:x:50000:user-defined-in-image
END
`
