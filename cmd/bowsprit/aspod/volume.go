package aspod

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// content has the files of a volume by their slash-separated paths in it.
type content map[string]string

// location is a directory or file that the program finds at a path.
type location struct {
	path string
	// read returns the current files. A location that is one file has it under the name "".
	read func(ctx context.Context, client kubernetes.Interface) (content, error)
	// file marks a location that is one file: a subPath, which does not follow changes.
	file bool
	// fixed marks a directory that does not follow changes.
	fixed bool
}

// accountDir is the directory where clients look for their in-cluster configuration.
const accountDir = "/var/run/secrets/kubernetes.io/serviceaccount"

// locations returns the directories and files of the container. notes describes the volumes that it leaves out.
func (p *pod) locations() (all []location, notes []string, err error) {
	volumes := map[string]corev1.Volume{}
	for _, v := range p.template.Spec.Volumes {
		volumes[v.Name] = v
	}
	automount := p.template.Spec.AutomountServiceAccountToken
	withToken := automount == nil || *automount
	for _, m := range p.container.VolumeMounts {
		at := path.Clean("/" + m.MountPath)
		v, found := volumes[m.Name]
		switch {
		case !found:
			return nil, nil, fmt.Errorf("volume %s of container %s is not in the pod", m.Name, p.container.Name)
		case at == "/":
			return nil, nil, fmt.Errorf("volume %s is mounted at /: choose another path", m.Name)
		case at == accountDir:
			withToken = false
		}
		if v.HostPath != nil {
			notes = append(notes, fmt.Sprintf("volume %s: the program uses %s of this machine itself", m.Name,
				v.HostPath.Path))
			continue
		}
		if !p.provides(v) {
			notes = append(notes, fmt.Sprintf("volume %s: %s is an empty directory", m.Name, at))
		}
		all = append(all, p.location(at, v, m))
	}
	if withToken {
		all = append(all, location{path: accountDir, read: p.accountFiles})
	}
	return all, notes, nil
}

// provides reports whether the files of a volume are known, or the volume is empty anyway.
func (*pod) provides(v corev1.Volume) bool {
	return v.Secret != nil || v.ConfigMap != nil || v.Projected != nil || v.DownwardAPI != nil || v.EmptyDir != nil
}

// location returns the location of a mount. A subPath selects one file or directory of the volume.
func (p *pod) location(at string, v corev1.Volume, m corev1.VolumeMount) location {
	all := func(ctx context.Context, client kubernetes.Interface) (content, error) {
		files, err := p.content(ctx, client, v)
		if err == nil {
			err = files.check()
		}
		if err != nil {
			return nil, fmt.Errorf("volume %s: %w", v.Name, err)
		}
		return files, nil
	}
	if m.SubPath == "" {
		return location{path: at, read: all, fixed: v.EmptyDir != nil}
	}
	below := path.Clean(m.SubPath)
	named := isFile(v, below)
	return location{path: at, file: named, fixed: true,
		read: func(ctx context.Context, client kubernetes.Interface) (content, error) {
			files, err := all(ctx, client)
			if err != nil {
				return nil, err
			}
			part := content{}
			for name, data := range files {
				if name == below {
					part[""] = data
				} else if rest, ok := strings.CutPrefix(name, below+"/"); ok {
					part[rest] = data
				}
			}
			if _, found := part[""]; named && !found {
				return nil, absent(fmt.Sprintf("volume %s has no file %s", v.Name, below))
			}
			return part, nil
		}}
}

// isFile reports whether a subPath of a volume is a file. Volumes of objects have directories only by their items.
func isFile(v corev1.Volume, below string) bool {
	var items []corev1.KeyToPath
	switch {
	case v.Secret != nil:
		items = v.Secret.Items
	case v.ConfigMap != nil:
		items = v.ConfigMap.Items
	case v.EmptyDir != nil || v.Projected == nil && v.DownwardAPI == nil:
		return false
	}
	for _, item := range items {
		if strings.HasPrefix(path.Clean(item.Path), below+"/") {
			return false
		}
	}
	return true
}

// check refuses paths that lead out of the volume, which a server could send.
func (c content) check() error {
	for name := range c {
		local := filepath.IsLocal(filepath.FromSlash(name)) && name != "."
		if !local || strings.HasPrefix(name, "..") || strings.ContainsRune(name, 0) {
			return fmt.Errorf("the file %q is not inside it", name)
		}
	}
	return nil
}

// content reads the files of a volume.
func (p *pod) content(ctx context.Context, client kubernetes.Interface, v corev1.Volume) (content, error) {
	all := content{}
	for _, source := range sourcesOf(v) {
		part, err := p.projected(ctx, client, source)
		if err != nil {
			return nil, err
		}
		maps.Copy(all, part)
	}
	return all, nil
}

// sourcesOf returns the sources of a volume in the form of a projected volume. Other kinds of volumes have none.
func sourcesOf(v corev1.Volume) []corev1.VolumeProjection {
	switch {
	case v.Secret != nil:
		return []corev1.VolumeProjection{{Secret: &corev1.SecretProjection{
			LocalObjectReference: corev1.LocalObjectReference{Name: v.Secret.SecretName}, Items: v.Secret.Items,
			Optional: v.Secret.Optional,
		}}}
	case v.ConfigMap != nil:
		return []corev1.VolumeProjection{{ConfigMap: &corev1.ConfigMapProjection{
			LocalObjectReference: v.ConfigMap.LocalObjectReference, Items: v.ConfigMap.Items,
			Optional: v.ConfigMap.Optional,
		}}}
	case v.DownwardAPI != nil:
		return []corev1.VolumeProjection{{DownwardAPI: &corev1.DownwardAPIProjection{Items: v.DownwardAPI.Items}}}
	case v.Projected != nil:
		return v.Projected.Sources
	}
	return nil
}

func (p *pod) projected(ctx context.Context, client kubernetes.Interface, s corev1.VolumeProjection) (content, error) {
	switch {
	case s.Secret != nil:
		return p.secret(ctx, client, s.Secret.Name, s.Secret.Items, s.Secret.Optional)
	case s.ConfigMap != nil:
		return p.configMap(ctx, client, s.ConfigMap.Name, s.ConfigMap.Items, s.ConfigMap.Optional)
	case s.DownwardAPI != nil:
		return p.downward(s.DownwardAPI.Items)
	case s.ServiceAccountToken != nil:
		t := s.ServiceAccountToken
		text, err := p.token(ctx, client, t.Audience, t.ExpirationSeconds)
		return content{t.Path: text}, err
	}
	return nil, errors.New("a projected source has a type that is not supported: remove it from the manifest")
}

func (p *pod) secret(
	ctx context.Context, client kubernetes.Interface, name string, items []corev1.KeyToPath, optional *bool,
) (content, error) {
	s, err := client.CoreV1().Secrets(p.namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return content{}, missing(err, optional)
	}
	data := content{}
	for key, value := range s.Data {
		data[key] = string(value)
	}
	return data.items("Secret "+name, items, optional)
}

func (p *pod) configMap(
	ctx context.Context, client kubernetes.Interface, name string, items []corev1.KeyToPath, optional *bool,
) (content, error) {
	m, err := client.CoreV1().ConfigMaps(p.namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return content{}, missing(err, optional)
	}
	data := content{}
	maps.Copy(data, m.Data)
	for key, value := range m.BinaryData {
		data[key] = string(value)
	}
	return data.items("ConfigMap "+name, items, optional)
}

// items returns the selected keys under their paths, or all keys if none are selected.
func (c content) items(from string, items []corev1.KeyToPath, optional *bool) (content, error) {
	if len(items) == 0 {
		return c, nil
	}
	out := content{}
	for _, item := range items {
		value, ok := c[item.Key]
		if ok {
			out[path.Clean(item.Path)] = value
		} else if optional == nil || !*optional {
			return nil, absent(fmt.Sprintf("%s has no key %s", from, item.Key))
		}
	}
	return out, nil
}

func (p *pod) downward(items []corev1.DownwardAPIVolumeFile) (content, error) {
	all := content{}
	for _, item := range items {
		var value string
		var err error
		switch {
		case item.FieldRef != nil:
			value, err = p.field(item.FieldRef.FieldPath)
		case item.ResourceFieldRef != nil:
			value, err = p.resource(item.ResourceFieldRef)
		}
		if err != nil {
			return nil, err
		}
		all[path.Clean(item.Path)] = value
	}
	return all, nil
}
