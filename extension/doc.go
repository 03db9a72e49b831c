// Package extension makes an extension API server of a few lines: kinds written in Go or described by a manifest,
// served as Kubernetes serves its own.
//
//	type Flunder struct {
//		metav1.TypeMeta   `json:",inline"`
//		metav1.ObjectMeta `json:"metadata"`
//		Spec              FlunderSpec `json:"spec"`
//	}
//
//	func main() {
//		extension.Main(extension.Server{Kinds: []extension.Kind{
//			extension.Of("wardle.example.com/v1alpha1", extension.Type[Flunder]{}),
//		}})
//	}
//
// Discovery, OpenAPI, tables, all kinds of patches, server-side apply, watches with bookmarks, pages, selectors, dry
// runs, admission, audit and metrics are those of Bowsprit; there is no second implementation of any of them.
//
// A Server stands behind a Kubernetes API server, Bowsprit or kube-apiserver, which sends it the requests for its
// groups: users are authenticated and authorized there. In makes the same kinds part of a Bowsprit in this process, of
// a test server for instance.
//
// docs/extension.md is the tutorial; docs/design/extension.md says why it is so.
package extension
