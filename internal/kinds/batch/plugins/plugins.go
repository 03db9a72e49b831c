// Package plugins has the admission plugins that are about kinds of the group batch, each in a file named after it,
// with cases in testdata that test/oracle-builtins asks Kubernetes' own plugins too. Package kinds/plugin says what a
// plugin is, and kinds/pluginlist in which order all of them are asked.
package plugins
