/** The settings of a server that runs stages in Kubernetes. */
import { flag, text } from '../schema/check.ts'
import { serverUrl } from '../schema/fields.ts'
import { images, names } from './setting-checks.ts'

export const kubernetesSettings = {
  kubernetes: {
    check: flag,
    default: false,
    summary: 'start the workers of stages with a Kubernetes runner as Kubernetes Jobs',
  },
  k8sNamespace: {
    check: text(63),
    value: 'NAME',
    summary: 'the namespace in which stages run; default: the namespace of the server or of the kubeconfig',
  },
  k8sUrl: {
    check: serverUrl,
    value: 'URL',
    summary: 'the URL of the server for workers in Kubernetes; default: the Service in deploy/',
  },
  k8sImage: {
    check: text(500),
    value: 'IMAGE',
    summary: 'the image that contains Pawl; none: the image of every stage contains it',
  },
  k8sKeySecret: {
    check: text(253),
    value: 'NAME',
    summary: 'the Secret whose "key" is the API key of workers; none: the server requires no key',
  },
  k8sImages: {
    check: images,
    value: 'IMAGE',
    summary:
      'an image that stages may use, or a pattern such as python:* or registry.example.com/team/*; may be repeated; default: only the image of --k8s-image',
  },
  k8sNamespaces: {
    check: names,
    value: 'NAME',
    summary: 'a namespace that stages may use, may be repeated; default: only the one of --k8s-namespace',
  },
  k8sSecrets: {
    check: names,
    value: 'NAME',
    summary: 'a Kubernetes Secret that stages may use, may be repeated; default: none',
  },
  k8sServiceAccounts: {
    check: names,
    value: 'NAME',
    summary: 'a service account that stages may run as, may be repeated; default: none',
  },
} as const
