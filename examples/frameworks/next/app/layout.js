import './style.css';

export const metadata = { title: 'Next behind Corelane', icons: 'data:,' };

export default function Layout({ children }) {
  return (
    <html lang="en">
      <body>{children}</body>
    </html>
  );
}
