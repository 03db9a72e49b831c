// Package extension makes an extension API server in a few lines: kinds written in Go or described by a manifest,
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
// Bowsprit provides discovery, OpenAPI, tables, all kinds of patches, server-side apply, watches with bookmarks, pages,
// selectors, dry runs, admission, audit and metrics; extension API servers use the same implementation.
//
// A Server stands behind a Kubernetes API server, Bowsprit or kube-apiserver, which forwards the requests for its
// groups, and which authenticates and authorizes users. In adds the same kinds to a Bowsprit in this process, such as a
// test server.
//
// docs/extension.md is the tutorial; docs/design/extension.md gives the reasons for the design.
package extension
