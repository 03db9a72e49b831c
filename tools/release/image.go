package main

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"
)

// descriptor, and the types that contain it, follow the OCI image specification 1.1.
type descriptor struct {
	MediaType   string            `json:"mediaType"`
	Digest      string            `json:"digest"`
	Size        int               `json:"size"`
	Platform    map[string]string `json:"platform,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

const (
	indexType    = "application/vnd.oci.image.index.v1+json"
	manifestType = "application/vnd.oci.image.manifest.v1+json"
	configType   = "application/vnd.oci.image.config.v1+json"
	layerType    = "application/vnd.oci.image.layer.v1.tar+gzip"

	// imageUser is the number of nobody on most systems: the image has no users, and needs none.
	imageUser = "65532:65532"
	imageData = "data"
	// imageName is a node's name for "bowsprit" in the chart: an imported image needs no registry.
	imageName = "docker.io/library/bowsprit"
)

// blobs are the parts of an image layout, by their digest.
type blobs map[string][]byte

func (b blobs) add(mediaType string, data []byte) descriptor {
	digest := fmt.Sprintf("%x", sha256.Sum256(data))
	b["blobs/sha256/"+digest] = data
	return descriptor{MediaType: mediaType, Digest: "sha256:" + digest, Size: len(data)}
}

func (b blobs) addJSON(mediaType string, value any) (descriptor, error) {
	data, err := json.Marshal(value)
	return b.add(mediaType, data), err
}

func indexOf(manifests ...descriptor) map[string]any {
	return map[string]any{"schemaVersion": 2, "mediaType": indexType, "manifests": manifests}
}

// image makes a tar of an OCI image layout with an image for each of the platforms. Each image contains the
// static program and an empty directory /data, which the image's user owns. The root may be read-only: the server only
// writes to /data.
func (r *release) image(programs map[target]string) error {
	if len(programs) == 0 {
		return nil
	}
	parts := blobs{}
	var manifests []descriptor
	for _, t := range r.targets {
		if programs[t] == "" {
			continue
		}
		d, err := r.imageOf(t, programs[t], parts)
		if err != nil {
			return fmt.Errorf("image: %w", err)
		}
		manifests = append(manifests, d)
	}
	all, err := parts.addJSON(indexType, indexOf(manifests...))
	if err != nil {
		return err
	}
	// The first is the specification's: a tag alone. Of that containerd makes a name with the day of the import in it.
	all.Annotations = map[string]string{
		"org.opencontainers.image.ref.name": r.version, "io.containerd.image.name": imageName + ":" + r.version,
	}
	index, err := json.Marshal(indexOf(all))
	if err != nil {
		return err
	}
	files := []entry{
		{name: "index.json", data: index, mode: 0o644},
		{name: "oci-layout", data: []byte(`{"imageLayoutVersion":"1.0.0"}`), mode: 0o644},
	}
	for _, name := range slices.Sorted(maps.Keys(parts)) {
		files = append(files, entry{name: name, data: parts[name], mode: 0o644})
	}
	data, err := tarred(sorted(files), r.time)
	if err != nil {
		return err
	}
	return r.write("bowsprit_"+strings.TrimPrefix(r.version, "v")+"_image.tar", data)
}

// healthcheck returns the health check of the image, which Docker and Podman run: the request of a readiness probe. The
// OCI specification has no health checks; these are the field and the units of Docker's. In the first minute a failure
// does not count.
func healthcheck() map[string]any {
	return map[string]any{
		"Test": []string{
			"CMD", "/bowsprit", "kubectl", "--kubeconfig=/" + imageData + "/kubeconfig", "get", "--raw=/readyz",
		},
		"Interval": 10 * time.Second, "Timeout": 10 * time.Second, "StartPeriod": time.Minute,
		"StartInterval": time.Second, "Retries": 3,
	}
}

// imageOf adds the image for one platform to the parts.
func (r *release) imageOf(t target, program string, parts blobs) (descriptor, error) {
	data, err := os.ReadFile(program)
	if err != nil {
		return descriptor{}, err
	}
	layer, err := r.layer(data)
	if err != nil {
		return descriptor{}, err
	}
	small, err := compress(layer)
	if err != nil {
		return descriptor{}, err
	}
	config, err := parts.addJSON(configType, map[string]any{
		"created": r.time, "architecture": t.arch, "os": t.os,
		"config": map[string]any{
			"User": imageUser, "Entrypoint": []string{"/bowsprit"}, "Cmd": []string{"serve", "--bind-address=0.0.0.0"},
			"Env":          []string{"BOWSPRIT_DATA_DIR=/" + imageData, "TMPDIR=/" + imageData, "PATH=/"},
			"ExposedPorts": map[string]any{"6443/tcp": struct{}{}},
			"Volumes":      map[string]any{"/" + imageData: struct{}{}},
			"Healthcheck":  healthcheck(),
			"Labels": map[string]string{
				"org.opencontainers.image.source": homepage, "org.opencontainers.image.version": r.version,
				"org.opencontainers.image.revision": r.commit, "org.opencontainers.image.licenses": "Apache-2.0",
			},
		},
		"rootfs": map[string]any{
			"type": "layers", "diff_ids": []string{fmt.Sprintf("sha256:%x", sha256.Sum256(layer))},
		},
	})
	if err != nil {
		return descriptor{}, err
	}
	d, err := parts.addJSON(manifestType, map[string]any{
		"schemaVersion": 2, "mediaType": manifestType, "config": config,
		"layers": []descriptor{parts.add(layerType, small)},
	})
	d.Platform = map[string]string{"os": t.os, "architecture": t.arch}
	return d, err
}
