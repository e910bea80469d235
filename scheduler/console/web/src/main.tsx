import { render } from 'preact'
import { App } from './app'
import { start } from './live'
import './app.css'

start()
render(<App />, document.getElementById('app')!)
